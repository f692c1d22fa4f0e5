"""Settings that every test runs under: one thread, nothing of the caller's surroundings."""

from __future__ import annotations

import os

# Read when torch and Ray are first imported, so set before any test module is.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
for name in ("ORCH_DATA", "MLFLOW_TRACKING_URI", "RAY_ADDRESS"):
    os.environ.pop(name, None)

import hypothesis
import pytest
import torch

torch.set_num_threads(1)
hypothesis.settings.register_profile("orch", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("orch")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the files, so that workers end together; skip tests marked ``gpu`` on machines without one.

    Slow files come first. Files that start Ray clusters come last: their tests wait more than they compute, and starve
    beside tests that compute.
    """
    slow, cluster = ({item.path for item in items if item.get_closest_marker(name)} for name in ("slow", "cluster"))
    items.sort(key=lambda item: (item.path in cluster, item.path not in slow))  # stable: else in the order of files
    if torch.cuda.is_available():
        return
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason="no accelerator on this machine"))
