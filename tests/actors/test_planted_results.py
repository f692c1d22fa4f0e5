"""The folder of a Tune run may be one that others can write: the driver unpickles nothing of what lies there."""

from __future__ import annotations

import json
import os
import pickle
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from actors.jobs import Workers, WorkersLost
from actors.searches import Report, run_search
from actors.trials import run_trials
from tests.actors.file_jobs import ignore
from tests.actors.test_searches import Steps

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]


class Planted:
    """Makes a folder when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.mark),)


@pytest.fixture
def planting(cluster: Workers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Have somebody exchange all that Tune could unpickle, when it has written for the last time; return the files."""
    from ray.tune.execution.tune_controller import TuneController

    planted: list[Path] = []
    end: Callable[[Any], None] = TuneController.cleanup
    pickled = pickle.dumps(Planted(tmp_path / "unpickled"))
    state = json.dumps({"trial_data": {"_type": "CLOUDPICKLE_FALLBACK", "value": pickled.hex()}})

    def cleanup(self: Any) -> None:
        (run,) = (path for path in Path(cluster.storage).iterdir() if (path / "tuner.pkl").exists())
        for trial in (path for path in run.iterdir() if path.is_dir()):
            planted.append(trial / "error.pkl")
        planted.extend((run / "tuner.pkl", run / "searcher-state-1.pkl"))
        for file in planted:
            file.write_bytes(pickled)
        for file in (*run.glob("experiment_state-*.json"), run / "experiment_state-2999-01-01_00-00-00.json"):
            file.write_text(state)
            planted.append(file)
        end(self)

    monkeypatch.setattr(TuneController, "cleanup", cleanup)
    return planted


def die(config: dict[str, Any]) -> dict[str, float]:
    if config["a"] == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return {"score": 0.0}


def die_at_once(config: dict[str, Any]) -> Iterator[Report]:
    if config["number"] == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    yield {"step": 2}


@pytest.mark.long
def test_what_was_planted_for_a_trial_that_is_given_up_is_not_unpickled(
    cluster: Workers, planting: list[Path], tmp_path: Path
) -> None:
    """The reason is that of Ray; the results of other trials arrive."""
    grid = {"a": {"grid_search": [1, 2]}}
    with pytest.raises(WorkersLost, match=r"trial {'a': 2} of grid is given up: .*(died|worker)"):
        run_trials(grid, die, cluster, name="grid", on_progress=ignore)
    assert len([file for file in planting if file.name == "error.pkl"]) == 2
    assert not (tmp_path / "unpickled").exists()


@pytest.mark.parametrize("trials", [0, pytest.param(2, marks=pytest.mark.long)])
def test_what_was_planted_in_the_folder_of_a_search_is_not_unpickled(
    cluster: Workers, planting: list[Path], tmp_path: Path, trials: int
) -> None:
    """Without any trials, too, of which Tune would look for former ones."""
    steering = Steps(trials, {})
    run_search(steering, die_at_once, cluster, 2, name="search")
    assert planting and not (tmp_path / "unpickled").exists()
    assert steering.heard == [(0, 2)][:trials]
    assert {number: type(error) for number, error in steering.failures.items()} == ({1: WorkersLost} if trials else {})
    assert all("is given up: " in str(error) for error in steering.failures.values())
