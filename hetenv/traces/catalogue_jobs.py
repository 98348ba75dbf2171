"""Jobs of real models at their measured speeds, in Poisson streams."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from hetenv.catalogue import load_catalogue
from hetenv.cluster import Cluster
from hetenv.errors import InputError
from hetenv.traces.poisson_jobs import PoissonJobs


class CatalogueJobs(PoissonJobs):
    """Each job trains a model of the catalogue: its speed on one GPU of each type is the measured one.

    How the job scales is computed, not measured: batch split and ring all-reduce of the model's
    gradient bytes (none where the catalogue does not know them), so that it may mix types and be
    sized freely. For measured scaling see ``GavelJobs``. ``PoissonJobs`` tells sizes and load.
    """

    kind: Literal["catalogue"] = "catalogue"
    source: str = Field("generations", description="source of the throughputs, a file of configs/catalogue")
    models: Annotated[tuple[str, ...], Field(min_length=1)] = Field(
        ("BERT-large", "ResNet-50"), description="models of that source, at a batch where it names one; equally likely"
    )

    def _draw_speeds(
        self, cluster: Cluster, n_jobs: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, dict[str, Any]]:
        speed, grad_bytes = self._figures(cluster)
        model = rng.integers(len(self.models), size=n_jobs)
        return speed[model], {"grad_bytes": grad_bytes[model], "model": np.array(self.models, object)[model]}

    def _figures(self, cluster: Cluster) -> tuple[np.ndarray, np.ndarray]:
        """(models, M) samples/s and (models,) gradient bytes."""
        catalogue = load_catalogue()
        if self.source not in catalogue.throughputs:
            raise InputError("source", repr(self.source), f"use one of {', '.join(catalogue.throughputs)}")
        figures = catalogue.throughputs[self.source]
        rows = [figures.table.row(name) for name in self.models]
        speed = figures.one_gpu_speed(cluster.type_names)[rows]
        if not (runs := speed.any(axis=1)).all():
            remedy = f"use GPU types that {self.source} has: {', '.join(figures.table.types)}"
            raise InputError(f"model {self.models[int(np.argmin(runs))]}", "measured on no GPU of the cluster", remedy)
        grad_bytes = [catalogue.models[figures.model[row]].grad_bytes or 0.0 for row in rows]
        return speed, np.array(grad_bytes)
