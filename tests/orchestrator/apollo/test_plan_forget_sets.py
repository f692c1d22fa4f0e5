"""Plans name forget sets by fraction, classes or ids, small and large."""

from __future__ import annotations

from pathlib import Path

import pytest

from audits.apollo.design.split import ForgetClasses, ForgetIds
from audits.data.ids import Points
from audits.errors import BadInput
from orchestrator.apollo.split import ForgetIds as ForgetPoints
from orchestrator.apollo.split import Split, checked_forget
from orchestrator.kinds import load_plan, plan_from
from tests.orchestrator.apollo.plan_cases import refusal


def test_a_forget_set_is_a_fraction_classes_or_ids(tmp_path: Path) -> None:
    names = ("T-shirt/top", "Trouser", "Pullover")
    by_class = load_plan(None, ["split.forget={classes: [Trouser, 2], fraction: 0.5}"]).split
    assert by_class.design(names).forget == ForgetClasses((1, 2), 0.5)
    assert by_class.forget_share is None
    assert by_class.forget_words() == "50 % of the training points of class Trouser, 2"
    by_id = load_plan(None, [f"split.forget={{ids: {list(range(60))}}}"]).split
    assert by_id.design().forget == ForgetIds(tuple(range(60)))
    assert by_id.forget_words() == "60 named points"
    fraction = load_plan().split
    assert (fraction.design().forget, fraction.forget_share) == (0.1, 0.1)
    assert fraction.forget_words() == "10 % of 500 training points"
    assert load_plan(None, ["split.forget={classes: [4]}"]).split.forget_words() == "all training points of class 4"


def test_a_file_of_ids_is_read_at_load_and_the_plan_no_longer_needs_it(tmp_path: Path) -> None:
    path = tmp_path / "ids.txt"
    path.write_text("# points of a customer\n0, 1,2\n" + "\n".join(str(row) for row in range(3, 60)) + "  # the rest\n")
    plan = load_plan(None, [f"split.forget={{ids_file: {path}}}"])
    path.unlink()
    assert plan_from(plan.resolved()) == plan == load_plan(None, [f"split.forget={{ids: {list(range(60))}}}"])


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("1\n01\n", '"01" is no point'),
        ("-1", '"-1" is no point'),
        ("", "at least 1"),
        ("1.5", '"1.5" is no point'),
        ("1 1e1", '"1e1" is no point'),
        ("1\t+2", '"+2" is no point'),
    ],
)
def test_files_that_hold_no_ids_are_refused(tmp_path: Path, text: str, part: str) -> None:
    path = tmp_path / "ids.txt"
    path.write_text(text)
    assert part in refusal(f"split.forget={{ids_file: {path}}}")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("ids.txt", "0, 1\tdog/1.png".replace("\t", "\n").encode()),
        ("ids.list", "0 1  # two\ndog/1.png\n".encode("utf-16")),
        ("ids.csv", b"id\n0\n1.0\ndog/1.png\n"),
        ("ids.json", b'[0, 1, "dog/1.png"]'),
    ],
)
def test_files_of_any_kind_name_points_by_id_or_by_name(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    split = Split(forget=checked_forget({"ids_file": str(tmp_path / name)}))
    assert isinstance(split.forget, ForgetPoints) and split.forget.ids == (0, 1, "dog/1.png")
    points = Points(5, lambda: ["cat/1.png", "cat/2.png", "cat/3.png", "dog/1.png", "dog/2.png"])
    assert split.design((), points).forget == ForgetIds((0, 1, 3))
    with pytest.raises(BadInput, match="no names"):
        split.design((), Points(5))
    with pytest.raises(BadInput, match="id 1 twice"):
        split.design((), Points(2, lambda: ["cat/1.png", "dog/1.png"]))


@pytest.mark.parametrize("name", ["ids.txt", "ids.list"])
def test_a_comment_that_is_the_name_of_a_point_is_refused_whenever_the_points_are_known(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_text(f"# of a customer\n{' '.join(map(str, range(60)))}\n#1/x.png\n# from a/list\n")
    others = [f"c/{point}.png" for point in range(90)]
    plan = load_plan(None, [f"split.forget={{ids_file: {tmp_path / name}}}"])
    (tmp_path / name).unlink()
    for each in (plan, plan_from(plan.resolved()), plan.changed({"seed": 5})):
        with pytest.raises(BadInput, match=r"split.forget.ids_file has the line '#1/x.png'.* write \./#1/x.png"):
            each.split.design((), Points(91, lambda: [*others, "#1/x.png"]))
        assert each.split.design((), Points(90, lambda: others)).forget == ForgetIds(tuple(range(60)))


def test_a_list_that_says_who_is_a_member_is_no_forget_set(tmp_path: Path) -> None:
    (tmp_path / "ids.csv").write_text("id,member\n1,1\n2,0\n")
    assert "members" in refusal(f"split.forget={{ids_file: {tmp_path / 'ids.csv'}}}")


@pytest.mark.parametrize(
    ("overrides", "forgotten"),
    [
        (["split.forget=0.01", "split.candidates={forget: 5, unseen: 5}", "audit.fpr=[0.25]"], 5),
        (["split.forget=0.5"], 250),
        (["split.shadows=4"], 50),
        (["split.shadows=64"], 50),
    ],
    ids=["1 %", "50 %", "m = 4", "m = 64"],
)
def test_small_and_large_forget_sets_and_shadow_sets_are_plans(overrides: list[str], forgotten: int) -> None:
    assert load_plan(None, overrides).split.design().forget_count == forgotten


def test_a_rate_that_named_points_or_classes_cannot_resolve_is_refused_with_the_needed_number() -> None:
    for forget in ("{classes: [1, 2, 3]}", f"{{ids: {list(range(60))}}}"):
        text = refusal(f"split.forget={forget}", "audit.fpr=[0.01]")
        assert "400 unseen candidates (8 targets × 50): it needs 1000" in text


def test_named_points_are_warned_of() -> None:
    plan = load_plan(None, [f"split.forget={{ids: {list(range(60))}}}"])
    assert any("not independent over points" in line for line in plan.warnings)
