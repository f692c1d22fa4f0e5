"""Names of attacks and selections as a TMIA page, its verdict and its messages write them."""

from __future__ import annotations

from orchestrator.report import words as shared

NAMES = {
    "tmia": "TMIA",
    "tmia_distance": "TMIA, distance",
    "tmia_posterior": "TMIA, posteriors",
    "rmia": "RMIA",
    "tmia_smoothed": "TMIA, smoothed",
    "tmia_vector": "TMIA, whole posteriors",
    "lira_oracle": "LiRA, oracle",
    "nasr": "Nasr, white box",
    "stolen_memories": "Stolen Memories, white box",
    "white_box": "white box",
    "pmia": "PMIA",
    "gmia1": "GMIA 1",
    "gmia2": "GMIA 2",
    "gmia3": "GMIA 3",
    "fmia": "FMIA",
    "yeom": "Yeom, loss",
    "all": "all candidates",
    "none": "random sample",
    "kmeans": "k-means distance",
    "reference_loss": "reference loss",
    "neighbours": "few neighbours",
    "gnq": "gradient uniqueness",
}


def words(name: str) -> str:
    """Return the name of an attack, a selection or an access level as the report writes it."""
    return shared.words(name, NAMES)
