"""Searches in this process: they go on as if nothing had happened, and a stopped trial costs its own parts only."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from actors.halving import Halving
from audits.errors import BadInput
from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.run.output_folder import Claim, no_claim
from orchestrator.engine.run.part_trial import PartTrial
from orchestrator.engine.run.run import Result
from orchestrator.engine.run.search_checks import check_search
from orchestrator.engine.run.search_journal import JOURNAL_FILE, Journal
from orchestrator.engine.run.search_result import counted, front
from orchestrator.engine.run.suggesting import Trial, suggest
from orchestrator.engine.run.target_parts import needed_for, parts_of, rungs
from orchestrator.engine.run.trial_ledger import Ledger
from orchestrator.engine.store.store import Store
from orchestrator.kinds import KINDS, kind_named, load_plan
from orchestrator.report.trials import remark, trial_grid
from tests.cases.runs import begun, jobs_of
from tune_spaces.registry import Sweep
from tune_spaces.space import Asha, Dimension, Search, Space

SPACE = Space(
    (
        Dimension("recipe.learning_rate", "loguniform", (0.0005, 0.05)),
        Dimension("recipe.epochs", "choice", (1, 8)),
        Dimension("recipe.weight_decay", "quniform", (0.0, 0.2, 0.1), {"recipe.epochs": (8,)}),
    )
)
FEW = Space((Dimension("recipe.epochs", "choice", (1, 2)),))
SEARCH = Search(SPACE, "optuna", 6, Asha(1, 2), ("loss.auc",), ("max",))
PARTS = 3


@pytest.fixture(scope="module", autouse=True)
def registered() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(KINDS, "toy", "tests.orchestrator.toy.kind:KIND")
        yield


def toy(place: Path) -> BasePlan:
    values = {"compute.workers": 0, "compute.store": str(place / "store")}
    return load_plan(kind_named("toy").default_plan, values=values)


def searched(
    search: Search, place: Path, *, force: bool = False, shown: bool = False, claim: Claim = no_claim, **changes: Any
) -> Result:
    """Carry out a search around the toy plan in ``place``, which holds its store as well."""
    sweep = Sweep("toy-search", "Epochs.", "", lambda plan: {}, "loss.auc", "a table", search=search)
    run = begun(toy(place).changed(changes), place / "out", sweep.name, shown=shown)
    run.claim = claim
    return run.sweep(sweep, force=force)


def told(result: Result) -> Any:
    """Return what a search and its table say, without what clocks say."""
    search = json.loads(json.dumps(result.document["search"]))
    for row in search["trials"]:
        del row["seconds"]
    return search, result.document["table"], result.document["settings"]


def lines(place: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (place / "out" / JOURNAL_FILE).read_text().splitlines()]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    place = tmp_path_factory.mktemp("undisturbed")
    return place, searched(SEARCH, place)


@pytest.mark.long
def test_a_search_that_broke_off_goes_on_and_nothing_is_done_twice(
    undisturbed: tuple[Path, Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It breaks behind the first rung of the fourth trial or a later one; the journal's last line is cut off, even.

    In short: ``test_a_journal_is_taken_up_with_what_the_searcher_drew``.
    """
    made: list[tuple[str, str]] = []
    put, begin = Store.put, PartTrial.__call__

    def counted(self: Store, stage: str, key: str, *rest: Any, **named: Any) -> None:
        made.append((stage, key))
        put(self, stage, key, *rest, **named)

    def broken(self: PartTrial, config: dict[str, Any]) -> Iterator[dict[str, Any]]:
        for report in begin(self, config):
            if config["number"] >= 3 and report["parts"] == 2:
                raise KeyboardInterrupt
            yield report

    monkeypatch.setattr(Store, "put", counted)
    with monkeypatch.context() as patch:
        patch.setattr(PartTrial, "__call__", broken)
        with pytest.raises(KeyboardInterrupt):
            searched(SEARCH, tmp_path)
    last = lines(tmp_path)[-1]
    assert last["trial"] in (3, 4, 5) and last["parts"] == 1
    assert [line["trial"] for line in lines(tmp_path) if line.get("state")] == list(range(last["trial"]))
    with (tmp_path / "out" / JOURNAL_FILE).open("a") as journal:
        journal.write('{"trial": 3, "parts": 2, "val')
    again = searched(SEARCH, tmp_path)
    assert told(again) == told(undisturbed[1])
    assert len(made) == len(set(made))
    first = undisturbed[0]
    assert {name: Store(first / "store").keys(name) for name in ("train", "score")} == {
        name: Store(tmp_path / "store").keys(name) for name in ("train", "score")
    }
    without_clocks = [[{**line, "at": 0, "seconds": 0} for line in lines(place)] for place in (first, tmp_path)]
    assert without_clocks[0] == without_clocks[1]

    before = list(made)  # a finished search is read from its journal
    assert told(searched(SEARCH, tmp_path)) == told(again)
    assert made == before


def test_a_stopped_trial_trains_the_models_of_its_parts_only(undisturbed: tuple[Path, Result]) -> None:
    place, result = undisturbed
    trials = result.document["search"]["trials"]
    assert {row["state"] for row in trials} == {"done", "stopped"}
    assert len({json.dumps(row["changes"]) for row in trials}) == len(trials)
    assert len(Store(place / "store").keys("train")) == sum(row["parts"] for row in trials)
    whole = [row["setting"] for row in trials if row["state"] == "done"]
    assert [entry["setting"] for entry in result.document["settings"]] == whole
    assert {row["setting"] for row in result.document["table"]} == set(whole)
    for row in result.document["table"]:
        if row["attack"] == "loss":
            assert [row["auc"]] == next(each["values"] for each in trials if each["setting"] == row["setting"])
    shown = trial_grid(result.document["search"]).texts
    assert len(shown) == len(trials) and [line[3] for line in shown] == sorted(line[3] for line in shown)
    best = max((row for row in trials if row["state"] == "done"), key=lambda row: row["values"])
    assert shown[0][:2] == [str(best["number"]), best["setting"]]
    assert "main" not in result.document  # no verdict is about what was picked on the targets


def test_a_journal_of_another_search_is_refused_unless_forced(tmp_path: Path) -> None:
    short = replace(SEARCH, algorithm="random", samples=1)
    searched(short, tmp_path)
    with pytest.raises(BadInput, match=r"search.jsonl is of another search \(seed: 0 there, 1 here\); choose another"):
        searched(replace(short, seed=1), tmp_path)
    with pytest.raises(BadInput, match=r"of another search \(plan: "):
        searched(short, tmp_path, seed=5)
    assert len(searched(replace(short, samples=2), tmp_path).document["search"]["trials"]) == 2
    forced = searched(replace(short, seed=1), tmp_path, force=True)
    assert [line.get("trial") for line in lines(tmp_path)] == [None, 0, 0, 0, 0, 0]
    assert len(forced.document["search"]["trials"]) == 1


def test_trials_of_other_code_or_data_are_refused_before_anything_is_written_and_forced_ones_begin_anew(
    tmp_path: Path,
) -> None:
    short = replace(SEARCH, algorithm="random", samples=1)
    searched(short, tmp_path)
    journal = tmp_path / "out" / JOURNAL_FILE
    head, begun, *rest = lines(tmp_path)
    text = "\n".join(json.dumps(each) for each in (head, {**begun, "jobs": "0" * 16}, *rest)) + '\n{"cut off'
    journal.write_text(text)
    before = {file: file.read_bytes() for file in sorted((tmp_path / "out").iterdir())}
    claims: list[bytes] = []

    def claim() -> None:
        claims.append(journal.read_bytes())

    with pytest.raises(BadInput, match="trial 0 was run with other code, data or versions; choose"):
        searched(short, tmp_path, claim=claim)
    assert not claims
    assert {file: file.read_bytes() for file in sorted((tmp_path / "out").iterdir())} == before
    searched(short, tmp_path, force=True, claim=claim)
    assert claims[0] == text.encode()
    assert lines(tmp_path)[1]["jobs"] == begun["jobs"]


def test_draws_of_a_search_are_different_as_long_as_the_space_has_more() -> None:
    """A condition leaves one setting where epochs are 1, which would otherwise be drawn every other time."""
    dimensions = (
        Dimension("recipe.epochs", "choice", (1, 8)),
        Dimension("recipe.weight_decay", "choice", (0.0, 0.1, 0.2), {"recipe.epochs": (8,)}),
    )
    search = Search(Space(dimensions), "random", 6, Asha(), ("loss.auc",), ("max",))
    trials: list[Trial] = []
    for number in range(4):
        changes, _ = suggest(search, trials)
        assert changes not in [trial.changes for trial in trials]
        trials.append(Trial(number, changes, {}))
    assert suggest(search, trials)[0] in [trial.changes for trial in trials]


def test_a_suggestion_that_repeats_a_trial_which_still_runs_is_not_run_and_ends_with_it(tmp_path: Path) -> None:
    search = Search(FEW, "random", 4, None, ("loss.auc",), ("max",))

    def ledger() -> Ledger:
        journal = Journal(tmp_path / JOURNAL_FILE, {"seed": 0})
        found = Ledger(search, 4, PARTS, journal, None, lambda trial: {"jobs": "x"}, lambda trial: None)
        found.go_on(journal.begin())
        return found

    first = ledger()
    asked = [first.ask(), first.ask(), first.ask()]
    assert [each and each["number"] for each in asked] == [0, 1, None]
    assert [trial.repeats is None for trial in first.trials] == [True, True, False, False]
    again = ledger()  # of the journal, in which no trial has ended
    assert again.waiting == [0, 1] and [trial.repeats for trial in again.trials] == [
        trial.repeats for trial in first.trials
    ]
    for number in (0, 1):
        again.hear(number, {"parts": PARTS, "numbers": {"loss.auc": 0.5 + number / 10}, "seconds": 1.0})
    for each in (again, ledger()):
        assert {trial.state for trial in each.trials} == {"done"} and not each.goes_on
        assert all(trial.last == each.trials[trial.repeats or trial.number].last for trial in each.trials)
        assert counted(each.trials) == "trials: 2 (2 done); 2 suggestions repeated one of them"


def test_repeated_suggestions_cost_nothing_and_seeds_are_averaged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    search = Search(FEW, "optuna", 4, None, ("loss.auc",), ("max",), seeds=(1, 2))
    result = searched(search, tmp_path)
    trials = result.document["search"]["trials"]
    first = {row["setting"]: row for row in reversed(trials)}
    repeated = [row for row in trials if row["repeats"] is not None]
    assert repeated and len(first) + len(repeated) == 4
    assert all(first[row["setting"]]["number"] == row["repeats"] for row in repeated)
    assert all(first[row["setting"]]["values"] == row["values"] for row in repeated)
    assert len(Store(tmp_path / "store").keys("train")) == PARTS * 2 * len(first)
    areas = {row["setting"]: row["auc"] for row in result.document["table"] if row["attack"] == "loss"}
    for name, row in first.items():
        assert row["values"] == [pytest.approx(np.mean([areas[f"{name}, seed={seed}"] for seed in (1, 2)]), abs=1e-12)]
    said = capsys.readouterr().out
    assert f"trial {repeated[0]['number']} repeats trial {repeated[0]['repeats']}" in said
    assert f"fields of recipe: each trial trains up to {PARTS} models" in said
    assert f"trials: {len(first)} ({len(first)} done); {len(repeated)} suggestion" in said
    assert len(trial_grid(result.document["search"]).texts) == len(first)  # none is counted or shown twice
    told = remark(result.document["search"])
    assert f"The best of {len(first)} trials ({len(first)} on all targets)" in told and "repeated a trial" in told


def test_a_failed_trial_lets_the_others_finish_and_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = replace(SEARCH, algorithm="random", samples=3, scheduler=Asha(2, 2))

    def failing(self: PartTrial, config: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if config["number"] == 1:
            raise FileNotFoundError(2, "gone", "/x")
        yield from begin(self, config)

    begin = PartTrial.__call__
    with monkeypatch.context() as patch:
        patch.setattr(PartTrial, "__call__", failing)
        with pytest.raises(FileNotFoundError, match="gone"):
            searched(search, tmp_path)
    assert [line["state"] for line in lines(tmp_path) if line.get("state")] == ["done", "failed", "done"]
    states = [row["state"] for row in searched(search, tmp_path).document["search"]["trials"]]
    assert set(states) <= {"done", "stopped"}


def test_a_budget_of_time_ends_a_search_at_a_rung(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no trial judged all its targets within 0.0 s; give the search more"):
        searched(replace(SEARCH, seconds=0.0), tmp_path)
    assert [line for line in lines(tmp_path) if "trial" in line] == []


def test_models_that_all_trials_share_are_trained_once_before_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    attacks = Space((Dimension("audit.attacks", "choice", (["loss"], ["loss", "right"])),))
    result = searched(Search(attacks, "optuna", 4, None, ("loss.auc",), ("max",)), tmp_path)
    assert result.document["population"] == {"models": PARTS, "reused": 0, "trained": PARTS}
    said = capsys.readouterr().out
    assert f"fields of audit: {PARTS} models are shared by all trials\n" in said
    assert said.index(f"population: {PARTS} models, 0 reused, {PARTS} to train") < said.index("trials: 4 to do")


@pytest.mark.long
def test_two_metrics_end_in_a_front(tmp_path: Path) -> None:
    """In short: ``test_the_front_is_of_trials_that_no_other_beats_in_both``."""
    search = replace(SEARCH, samples=4, scheduler=None, metric=("loss.auc", "right.auc"), mode=("max", "min"))
    document = searched(search, tmp_path).document["search"]
    values = {row["number"]: row["values"] for row in document["trials"]}
    beaten = {
        number
        for number, (high, low) in values.items()
        for other in values.values()
        if other[0] >= high and other[1] <= low and other != [high, low]
    }
    assert document["front"] == [number for number in values if number not in beaten] != []
    assert document["rungs"] == [PARTS] and document["scheduler"] is None


@pytest.mark.parametrize(
    ("search", "parts", "said"),
    [
        (SEARCH, 1, "asha has nothing to stop: the targets of this plan are judged in one part"),
        (replace(SEARCH, scheduler=Asha(3, 3)), 3, "judged in 3 parts, and the first rung is after 3; .* lower grace"),
        (
            replace(SEARCH, metric=("a", "b"), mode=("min", "max")),
            3,
            "asha stops trials by one number, and metric names",
        ),
        (replace(SEARCH, samples=None), 3, "samples: say how many trials search: optuna makes"),
    ],
)
def test_searches_that_cannot_be_made_are_refused(search: Search, parts: int, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        check_search(search, parts)


def test_a_metric_that_no_setting_has_is_refused_with_the_closest(tmp_path: Path) -> None:
    told = r"'los.auc' is not a number of these settings \(did you mean 'loss.auc'\?\); loss"
    with pytest.raises(BadInput, match=told):
        searched(replace(SEARCH, metric=("los.auc",)), tmp_path)


# its parts


def test_a_journal_is_taken_up_with_what_the_searcher_drew(tmp_path: Path) -> None:
    journal = Journal(tmp_path / JOURNAL_FILE, {"seed": 0})
    ledger = Ledger(
        replace(SEARCH, space=FEW, seconds=100.0), 9, PARTS, journal, None,
        lambda trial: {"jobs": "x"}, lambda trial: None, clock=lambda: 0.0,
    )  # fmt: skip
    assert ledger.goes_on
    asked = {"changes": {"recipe.epochs": 1}, "jobs": "x"}
    told = [
        {"trial": 0, **asked, "params": {"recipe.epochs": 0}, "at": 1.0},
        {"trial": 1, **asked, "params": {"recipe.learning_rate": 0.0012345678}, "at": 2.0},
        {"trial": 0, "parts": 3, "values": [0.5], "seconds": 4.0, "at": 5.0},
        {"trial": 1, "parts": 1, "values": [None], "seconds": 1.0, "at": 6.0},
        {"trial": 0, "state": "done", "at": 99.0},
    ]
    ledger.go_on(told)
    first, second = ledger.trials
    assert (first.params, first.values, first.state) == ({"recipe.epochs": 0}, {3: (0.5,)}, "done")
    assert (second.params, second.values, second.state) == ({"recipe.learning_rate": 0.0012345678}, {1: (None,)}, "")
    assert ledger.ask() == {"number": 1, "jobs": "x"}
    assert ledger.at == 99.0 and not ledger.out_of_time
    ledger.go_on([{"trial": 0, "state": "done", "at": 101.0}])
    assert ledger.out_of_time  # time of earlier processes counts
    assert ledger.hear(1, {"parts": 1, "numbers": {"loss.auc": 0.7}, "seconds": 2.0})
    assert second.state == "out of time" and second.values == {1: (0.7,)}
    assert ledger.ask() is None and not ledger.goes_on


@pytest.mark.parametrize(
    "changes",
    [
        {"data.name": "python:mine:points"},
        {"recipe.epochs": 1, "data.name": "python:mine:points"},
        {"recipe.epochs": 3},
        {"recipe.epochs": "1"},
        {},
        ["recipe.epochs"],
    ],
    ids=str,
)
def test_a_trial_that_the_search_could_not_draw_is_refused(changes: Any, tmp_path: Path) -> None:
    search = Search(FEW, "random", 4, None, ("loss.auc",), ("max",))
    journal = Journal(tmp_path / JOURNAL_FILE, {"seed": 0})
    laid_out: list[Trial] = []

    def describe(trial: Trial) -> dict[str, Any]:
        laid_out.append(trial)
        return {"jobs": "x"}

    ledger = Ledger(search, 4, PARTS, journal, None, describe, lambda trial: None)
    with pytest.raises(BadInput, match=r"search\.jsonl: trial 0 is none"):
        ledger.go_on([{"trial": 0, "changes": changes, "params": {}, "jobs": "", "at": 1.0}])
    assert not laid_out


def test_suggestions_depend_on_seed_number_and_earlier_trials_alone() -> None:
    search = replace(SEARCH, scheduler=None, samples=20)
    trials: list[Trial] = []
    for number in range(14):
        changes, params = suggest(search, trials)
        trials.append(Trial(number, changes, params, {PARTS: (-changes["recipe.learning_rate"],)}, "done"))
    kept = json.loads(json.dumps([[trial.changes, trial.params] for trial in trials]))
    again = [Trial(at, *each, trials[at].values, "done") for at, each in enumerate(kept)]
    for number in range(14):
        assert suggest(search, again[:number]) == (trials[number].changes, trials[number].params)
    assert suggest(replace(search, seed=1), [])[0] != trials[0].changes
    # values matter once the sampler has enough of them: it goes where they are best
    opposite = [replace(trial, values={PARTS: (-trial.last[0],)}) for trial in trials]  # type: ignore[operator]
    low, high = suggest(search, trials)[0], suggest(search, opposite)[0]
    assert low["recipe.learning_rate"] < high["recipe.learning_rate"]
    for trial in trials:
        assert ("recipe.weight_decay" in trial.changes) == (trial.changes["recipe.epochs"] == 8)
        assert trial.changes.get("recipe.weight_decay", 0.1) in (0.0, 0.1, 0.2)
        rate = trial.changes["recipe.learning_rate"]
        assert rate == float(f"{rate:.4g}") and 0.0005 <= rate <= 0.05


@pytest.mark.parametrize("mode", ["min", "max"])
def test_halving_keeps_the_best_share_of_those_before(mode: str) -> None:
    generator = np.random.default_rng(0)
    halving = Halving(9, 1, 3, mode)  # type: ignore[arg-type]
    before: dict[int, list[float]] = {1: [], 3: []}
    sign = 1 if mode == "max" else -1
    stopped = 0
    for number in range(60):
        for parts in rungs(9, 1, 3):
            value = float(generator.normal())
            stops = halving.stops(number, parts, value)
            if parts == 9:
                assert stops
                break
            limit = np.percentile([sign * each for each in before[parts]], 100 * 2 / 3) if before[parts] else -np.inf
            assert stops == (sign * value < limit)
            before[parts].append(value)
            if stops:
                stopped += 1
                break
    assert 30 < stopped < 60


def test_parts_of_targets_need_their_own_models_only() -> None:
    plan = load_plan("apollo-smoke", ["split.shadows=4", "audit.fpr=[0.5]"])
    kind, jobs = kind_named("apollo"), jobs_of(plan)
    parts = parts_of(kind, jobs)
    assert len(parts) == plan.split.targets
    closures = [{job.key for job in needed_for(jobs, part)} for part in parts]
    trained = [{job.key for job in jobs if job.stage == "train" and job.key in found} for found in closures]
    assert not any(a & b for i, a in enumerate(trained) for b in trained[:i])
    assert set.union(*trained) == {job.key for job in jobs if job.stage == "train"}
    assert rungs(9, 1, 3) == [1, 3, 9] and rungs(10, 2, 2) == [2, 4, 8, 10]


def test_the_front_is_of_trials_that_no_other_beats_in_both() -> None:
    points: Sequence[tuple[float, float]] = [*product((0.1, 0.2, 0.3), (0.5, 0.6)), (0.05, 0.4), (0.1, 0.6)]
    trials = [Trial(number, {}, {}, {1: values}, "done") for number, values in enumerate(points)]
    trials.append(Trial(len(trials), {}, {}, {1: (0.0, None)}, "done"))
    beaten = {
        number
        for number, (low, high) in enumerate(points)
        for other in points
        if (other[0] <= low and other[1] >= high) and other != (low, high)
    }
    assert front(trials, ("min", "max")) == [number for number in range(len(points)) if number not in beaten]


def test_a_line_in_the_middle_that_is_none_is_refused(tmp_path: Path) -> None:
    journal = Journal(tmp_path / JOURNAL_FILE, {"seed": 0})
    assert journal.begin() == []
    journal.note(trial=0)
    (tmp_path / JOURNAL_FILE).write_bytes(b"x\n" + (tmp_path / JOURNAL_FILE).read_bytes())
    with pytest.raises(BadInput, match="line 1, is not a line of a search"):
        journal.begin()


@pytest.mark.parametrize(
    "line",
    [{"trial": 7, "state": "done"}, {"trial": 0, "changes": {}}, {"trial": 2, "changes": {}}, {"state": "done"}],
    ids=str,
)
def test_a_line_about_a_trial_that_is_none_is_refused(tmp_path: Path, line: dict[str, Any]) -> None:
    journal = Journal(tmp_path / JOURNAL_FILE, {"seed": 0})
    journal.begin()
    journal.note(trial=0, changes={})
    journal.note(**line)
    with pytest.raises(BadInput, match="line 3, is not a line of a search; choose another --out, or add --force"):
        journal.begin()


@pytest.mark.parametrize(
    ("count", "said"), [(1, "The search has one trial: nothing was picked."), (2, "The best of 2 ")]
)
def test_of_one_trial_nothing_was_picked(count: int, said: str) -> None:
    trials = [{"state": "done", "repeats": None}] * count
    assert remark({"trials": trials, "out_of_time": False}).startswith(said)
