"""Lists of points that the suite knows to be refused, and files of plans that Git LFS has not fetched."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import torch
from PIL import Image

from audits.models import make_model
from tests.audits.data import test_ids, test_lfs_pointers
from tests.cases.refusals import Refused, rows

FIVE = """\
audit: {kind: gnq}
data: {name: 'folder:train'}
model: {name: mlp, settings: {hidden: [8]}}
target: {weights: five.pt, members: all}
"""
"""A plan of five points that have names."""
LISTS = ("ids.parquet", "ids.txt", "t.csv", "r.json", "a.npy")
"""Files of points, as pointers of Git LFS."""


def of_points() -> Iterator[Refused]:
    """Yield plans of lists of points, and of other files where a pointer of Git LFS lies."""
    few = ("validate",)
    for number, (_, named) in enumerate(rows(test_ids.test_what_may_mean_another_point_or_none_is_refused)):
        yield Refused("gnq", "five.yaml", (f"target.members=named-{number}.json",), re.escape(named), "points", few)
    files = rows(test_ids.test_files_that_list_no_points_are_refused_in_one_line)
    for number, (name, _, parts) in enumerate(files):
        said = "".join(f"(?=.*{re.escape(part)})" for part in parts)
        yield Refused("gnq", "five.yaml", (f"target.members=file-{number}-{name}",), said, "points", few)
    yield Refused("gnq", "nine.yaml", ("target.members=../points/unnamed.txt",), "no names", "nine", few)
    pointers = [
        *(("gnq", "five.yaml", (f"target.members={name}",)) for name in LISTS),
        ("mia", "../mia/plan.yaml", ("target.members=all", "target.weights=t.parquet", "audit.attacks=[label_gap]",
                                     "target.served={gives: labels}")),
        ("tmia", "tmia-smoke", ("audit.mode=III", "variants={}", "transfer.teacher=w.pth",
                                "transfer.teacher_input=raw")),
        ("apollo", "apollo-fashion14", ("split.forget={ids_file: ids.txt}",)),
    ]  # fmt: skip
    for kind, source, changes in pointers:
        yield Refused(kind, source, changes, "git lfs pull", "points", few)


def write_points(folder: Path) -> None:
    """Leave these lists, the five images whose names they hold, weights and pointers."""
    for name in test_ids.NAMES:
        (folder / "train" / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (4, 4)).save(folder / "train" / name)
    torch.save(make_model("mlp", {"hidden": [8]}).build((1, 4, 4), 2, 0).state_dict(), folder / "five.pt")
    (folder / "five.yaml").write_text(FIVE)
    for number, (text, _) in enumerate(rows(test_ids.test_what_may_mean_another_point_or_none_is_refused)):
        (folder / f"named-{number}.json").write_text(json.dumps(["2", text]))
    files = rows(test_ids.test_files_that_list_no_points_are_refused_in_one_line)
    for number, (name, content, _) in enumerate(files):
        (folder / f"file-{number}-{name}").write_bytes(content)
    (folder / "unnamed.txt").write_text("1\ncat/1.png\n")
    for name in (*LISTS, "t.parquet", "w.pth"):
        (folder / name).write_text(test_lfs_pointers.POINTER)
