"""Distance to the centre of the own cluster: the selector of TMIA."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from audits.tmia.anomalies import MAX_ITER, RESTARTS, k_means, k_means_streamed
from audits.tmia.selectors.base import SELECTORS, Case, Scores, Selector


@SELECTORS.register("kmeans")
@dataclass(frozen=True)
class KMeansDistance(Selector):
    """Distance d_i to the centre of the point's cluster, k-means over candidates and reference samples together.

    TMIA, Algorithm 1. ``n_clusters`` null: the number of classes. Scores are L2 distances of features.
    """

    n_clusters: int | None = None
    restarts: int = RESTARTS
    max_iter: int = MAX_ITER

    def select(self, case: Case) -> Scores:
        """Return distances to the own centre; features in blocks are clustered by ``k_means_streamed``."""
        features = case.known_features()
        count = case.classes if self.n_clusters is None else self.n_clusters
        if isinstance(features, torch.Tensor):
            found = k_means(features, count, seed=case.seed, restarts=self.restarts, max_iter=self.max_iter)
        else:
            found = k_means_streamed(features, count, seed=case.seed, restarts=self.restarts, max_iter=self.max_iter)
        return Scores(found.distance[: case.candidates], found.distance[case.candidates :])
