"""Where the jobs of a scenario come from: one pydantic model a source, told apart by ``kind``.

Each is immutable, refuses unknown fields and has ``draw(cluster, rng) -> Workload``.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hetenv.traces.acme_jobs import AcmeJobs
from hetenv.traces.catalogue_jobs import CatalogueJobs
from hetenv.traces.gavel_jobs import GavelJobs
from hetenv.traces.helios_jobs import HeliosJobs
from hetenv.traces.openb_jobs import OpenbJobs
from hetenv.traces.philly_jobs import PhillyJobs
from hetenv.traces.synthetic_jobs import SyntheticJobs
from hetenv.traces.trace_jobs import TraceJobs

AnySource = SyntheticJobs | PhillyJobs | HeliosJobs | OpenbJobs | AcmeJobs | GavelJobs | CatalogueJobs | TraceJobs
JobSource = Annotated[AnySource, Field(discriminator="kind")]

KINDS = frozenset(source.model_fields["kind"].default for source in AnySource.__args__)

__all__ = [
    "KINDS",
    "AcmeJobs",
    "CatalogueJobs",
    "GavelJobs",
    "HeliosJobs",
    "JobSource",
    "OpenbJobs",
    "PhillyJobs",
    "SyntheticJobs",
    "TraceJobs",
]
