"""Groups of points and copies across borders in plans of all kinds, without a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from audits.data import duplicates
from audits.data.duplicates import copies
from audits.errors import BadInput
from orchestrator.cli.main import main
from orchestrator.engine.data import data_of
from orchestrator.engine.plan.errors import PlanProblems
from orchestrator.engine.run.copies import copy_warnings
from orchestrator.kinds import check_against_data, load_plan, open_design
from tests.cases.smallest_plans import SMALLEST, smallest_plan
from tests.orchestrator.engine.run.small_plans import SMALL


def groups_file(place: Path, points: int, most: int = 3) -> str:
    """Write groups of one to ``most`` points, dealt at random; return the file's path."""
    rng = np.random.default_rng(most)
    names = rng.permutation(np.repeat(np.arange(points), rng.integers(1, most + 1, points))[:points])
    file = place / f"groups-{most}.csv"
    file.write_text("id,group\n" + "".join(f"{point},patient {name}\n" for point, name in enumerate(names)))
    return str(file)


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=[pytest.mark.long] * (kind == "gnq")) for kind in SMALL])
def test_groups_of_a_file_enter_the_design_and_the_keys_of_every_model(kind: str, tmp_path: Path) -> None:
    plain = open_design(smallest_plan(kind, tmp_path))
    designs = []
    for most in (2, 3):
        plan = smallest_plan(kind, tmp_path, **{"data.groups": groups_file(tmp_path, len(plain.data), most)})
        check_against_data(plan)
        designs.append(open_design(plan))
    keys = [{job.key for job in design.jobs() if job.stage == "train"} for design in (plain, *designs)]
    assert all(keys) and not keys[0] & keys[1] and not keys[1] & keys[2]
    for design in designs:
        groups, found = design.data.groups, design.borders()
        assert groups is not None and found is not None
        used = found.side >= 0
        pairs = np.unique(np.stack([groups[used], found.side[used]]), axis=1)
        assert len(np.unique(pairs[0])) == pairs.shape[1]  # each group on one side
    found = plain.borders()
    assert found is not None and (np.bincount(found.side[found.asked]) <= 1).all()  # each asked point a side


def refused(kind: str, tmp_path: Path, **more: Any) -> str:
    with pytest.raises(BadInput) as caught:
        open_design(smallest_plan(kind, tmp_path, **more)).jobs()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_plans_that_would_cut_through_groups_are_refused_in_one_line(tmp_path: Path) -> None:
    points = len(open_design(smallest_plan("apollo", tmp_path)).data)
    file = groups_file(tmp_path, points)
    assert "split.points is exposed, which" in refused("apollo, exposed points", tmp_path, **{"data.groups": file})
    assert "split.points is memorised, which" in refused("apollo, memorised points", tmp_path, **{"data.groups": file})
    own = groups_file(tmp_path, len(open_design(smallest_plan("gnq", tmp_path)).data), 2)
    assert "audit.held_out is 2" in refused("gnq", tmp_path, **{"data.groups": own, "audit.held_out": 2})
    base, values = SMALLEST["tmia"]
    other = {"transfer.data.name": "digits", "transfer.data.groups": file, "compute.workers": 0}
    with pytest.raises(PlanProblems, match=r"transfer\.data\.groups is given"):
        load_plan(base, values={**values, **other})


@pytest.mark.parametrize("other", [{}, {"transfer.data.name": "digits"}], ids=["its own data", "named again"])
def test_the_other_side_of_a_transfer_holds_no_point_of_a_candidates_group(
    other: dict[str, str], tmp_path: Path
) -> None:
    plain = open_design(smallest_plan("tmia", tmp_path))
    values = {"data.groups": groups_file(tmp_path, len(plain.data)), "audit.mode": "III", "audit.attacks": ["pmia"]}
    design: Any = open_design(smallest_plan("tmia", tmp_path, **values, **other))
    groups, asked = design.data.groups, design.sets.candidates
    teachers = np.concatenate([model.train for model in design.models.values() if model.side == "other"])
    assert len(teachers) and not np.isin(groups[teachers], groups[asked]).any()
    assert not np.isin(groups[design.sets.filler], groups[asked]).any()


def test_a_file_that_does_not_fit_the_data_is_refused_before_a_run(tmp_path: Path) -> None:
    plan = smallest_plan("apollo", tmp_path, **{"data.groups": groups_file(tmp_path, 20)})
    with pytest.raises(BadInput, match="has no group for point 20"):
        check_against_data(plan)
    with pytest.raises(BadInput, match="has no group for point 20"):
        data_of(plan.data.name, plan.data.root, plan.data.groups)


@pytest.mark.parametrize("kind", SMALL)
def test_groups_that_cannot_be_dealt_are_no_valid_plan(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "one.csv"
    file.write_text("id,group\n" + "\n".join(f"{point},all" for point in range(1797)))
    assert main(["validate", f"{kind}-smoke", "--set", f"data.groups={file}"]) == 2
    assert "data.groups: a group has 1797 points" in capsys.readouterr().err


@pytest.mark.parametrize("kind", SMALL)
def test_a_copy_across_a_border_is_warned_of_in_one_line(kind: str, tmp_path: Path) -> None:
    design = open_design(smallest_plan(kind, tmp_path))
    found = design.borders()
    assert found is not None
    before = copies(design.data, found)
    one = int(found.asked[0])
    two = int(np.flatnonzero((found.side >= 0) & (found.side != found.side[one]))[-1])
    inputs = np.array(design.data.inputs)
    inputs[two] = inputs[one]
    design.data = replace(design.data, inputs=inputs)
    (line,) = copy_warnings(design)
    after = copies(design.data, found)
    assert before is not None and after is not None and after.exact >= before.exact + 1
    assert f"{after.exact + after.near} of {len(found.asked)} points asked about ha" in line
    assert "data.groups" in line and "\n" not in line
    design.data = replace(design.data, inputs=np.arange(inputs.size, dtype=np.float32).reshape(inputs.shape))
    assert not any("exact" in text and "(0 exact, " not in text for text in copy_warnings(design))


def test_near_copies_are_not_sought_where_each_run_would_take_long_for_it_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duplicates, "MOST_OPERATIONS", 1.0)
    design = open_design(smallest_plan("gnq", tmp_path))
    found = design.borders()
    assert found is not None
    (line,) = copy_warnings(design)
    assert "near copies across borders of the split were not looked for" in line and "orch data duplicates" in line
    inputs = np.array(design.data.inputs)
    inputs[found.asked[1]] = inputs[found.asked[0]]
    design.data = replace(design.data, inputs=inputs)
    exact, _ = copy_warnings(design)
    assert "exact; such as points" in exact
