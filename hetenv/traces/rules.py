"""The rules by which records of a trace become jobs: a stated default and an option for each doubtful case."""

from __future__ import annotations

from datetime import timezone, tzinfo
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

Outcome = Literal["completed", "failed", "killed"]


def _known_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ValueError, OSError, KeyError):  # a path, an impossible file name, an unknown zone
        raise ValueError(f"{name!r} is no time zone: give a name such as UTC or Asia/Shanghai") from None
    return name


class Rules(BaseModel):
    """What to do with records that are no plain job. Everything changed or dropped is counted by reason."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    fractional: Literal["up", "drop", "error"] = Field(
        "up", description="jobs of a fraction of a GPU: round up to whole GPUs, drop, or stop with an error"
    )
    cpu_only: Literal["drop", "error"] = Field("drop", description="jobs without a GPU: drop, or stop")
    outcomes: tuple[Outcome, ...] = Field(
        ("completed", "failed", "killed"), min_length=1, description="jobs to keep, by how they ended"
    )
    gaps: Literal["skip", "count"] = Field(
        "skip", description="idle gaps between the attempts of a job: no run time, or counted as run time"
    )
    zone: Annotated[str, AfterValidator(_known_zone)] = Field(
        "UTC", description="zone of times that name none, e.g. America/Los_Angeles; never that of this machine"
    )
    missing: Literal["drop", "error"] = Field(
        "drop", description="jobs that lack a time or the number of GPUs: drop, or stop"
    )
    zero_durations: Literal["drop", "second", "error"] = Field(
        "drop", description="jobs that ran for no time: drop, count as one second, or stop"
    )
    negative_durations: Literal["drop", "error"] = Field(
        "drop", description="jobs that ended before they started: drop, or stop"
    )
    duplicates: Literal["exact", "id", "keep", "error"] = Field(
        "exact",
        description="rows that come again: drop those equal in id and content; or all of an id seen before (without "
        "ids: of equal content); or keep them; or stop. Jobs that share an id get names of their own",
    )
    step_s: float = Field(
        1.0, gt=0, allow_inf_nan=False, description="seconds of an iteration, for traces that count iterations alone"
    )

    @property
    def clock(self) -> tzinfo:
        """The zone as an object."""
        return timezone.utc if self.zone == "UTC" else ZoneInfo(self.zone)
