"""Ray that does not start in time is started again; what else goes wrong is told as it is."""

from __future__ import annotations

from typing import Any

import pytest

from actors.cluster import ATTEMPTS, _join, _started
from audits.own.import_path import settle_worker

LATE = Exception("The current node timed out during startup. This could happen because …")


class Ray:
    """Starts after ``failures``; notes what was done."""

    def __init__(self, *failures: Exception) -> None:
        self.failures, self.done = list(failures), list[str]()

    def init(self) -> None:
        self.done.append("init")
        if self.failures:
            raise self.failures.pop(0)

    def shutdown(self) -> None:
        self.done.append("shutdown")


def test_a_machine_that_was_busy_gets_a_second_try() -> None:
    ray = Ray(LATE)
    _started(ray.init, ray.shutdown)
    assert ray.done == ["init", "shutdown", "init"]


def test_after_the_last_try_a_line_says_what_to_do() -> None:
    ray = Ray(*[LATE] * ATTEMPTS)
    with pytest.raises(RuntimeError, match=r"too busy or short of memory; run the same command again .* --workers 0"):
        _started(ray.init, ray.shutdown)
    assert ray.done == ["init", "shutdown"] * ATTEMPTS


def test_another_failure_is_raised_at_once() -> None:
    ray = Ray(ValueError("another"))
    with pytest.raises(ValueError, match="another"):
        _started(ray.init, ray.shutdown)
    assert ray.done == ["init"]


def test_a_cluster_is_joined_without_the_working_folder_below_uv_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its workers are settled as those of a private cluster are, before they take work."""
    import ray
    from ray._common.utils import load_class
    from ray._private import ray_constants

    joined = {}

    def init(**settings: Any) -> None:
        joined.update(settings, uv=ray_constants.RAY_ENABLE_UV_RUN_RUNTIME_ENV)

    monkeypatch.setattr(ray_constants, "RAY_ENABLE_UV_RUN_RUNTIME_ENV", True)
    monkeypatch.setattr(ray, "init", init)
    _join("head", {"OMP_NUM_THREADS": "1"})
    assert joined["uv"] is False and ray_constants.RAY_ENABLE_UV_RUN_RUNTIME_ENV is True
    assert load_class(joined["runtime_env"]["worker_process_setup_hook"]) is settle_worker
