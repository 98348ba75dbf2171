"""The table of public traces: where their owners keep them, what is known to check them by, and their licence."""

from __future__ import annotations

from functools import cache
from pathlib import Path, PurePosixPath
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PositiveInt

from hetenv.shipped import config_dir


def _inside(path: str) -> str:
    if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
        raise ValueError(f"{path!r} leaves the folder of the trace")
    return path


Inside = Annotated[str, AfterValidator(_inside)]


class PublicFile(BaseModel):
    """One download.

    Attributes:
        url: its address; None: its path behind the ``base`` of the trace.
        sha256: what its owner, or the project, found it to be; None where nobody published one.
        bytes: its size, where known.
        unpack: the files to take out of it, each by the end of its path in the archive; they keep that path.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: str | None = None
    sha256: str | None = Field(None, pattern=r"^[0-9a-f]{64}$")
    bytes: PositiveInt | None = None
    unpack: tuple[Inside, ...] = ()


class PublicTrace(BaseModel):
    """One trace: the files it needs and the one that a reader is given.

    Attributes:
        format: its name in ``hetenv.traces.FORMATS``.
        licence: under which it is published, in words for the user.
        source: the page of its owner.
        jobs: path of the file that ``hetenv.load_workload`` takes.
        base: what addresses of files without one begin with.
        files: path in the folder of the trace -> download.
        folder: name of that folder; None: the name of the trace.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: str
    licence: str
    source: str
    jobs: Inside
    base: str = ""
    files: dict[Inside, PublicFile]
    folder: Inside | None = None

    def url(self, path: str) -> str:
        """The address of one of its files."""
        return self.files[path].url or self.base + path


class _Table(BaseModel):
    traces: dict[str, PublicTrace]


@cache
def public_traces(table: Path | None = None) -> dict[str, PublicTrace]:
    """The traces of a table by name; None: the one that ships, ``configs/traces.yaml``.

    Entries whose name begins with an underscore are only there for others to refer to.

    Raises:
        InputError: the table cannot be read, or an entry is not of this form.
    """
    from hetenv.config import parse_model, read_yaml  # which imports the readers of traces

    path = table or config_dir() / "traces.yaml"
    entries = {name: entry for name, entry in read_yaml(path).items() if not str(name).startswith("_")}
    traces: dict[str, PublicTrace] = parse_model(_Table, {"traces": entries}, str(path)).traces
    return traces
