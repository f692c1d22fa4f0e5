"""Every plan that the suite knows to be refused, read from the tables in which it stands, and the files it names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image
from torch import nn

from audits.data.catalogue import load
from audits.models import make_model
from orchestrator.kinds import KINDS, load_plan
from tests.audits.data import test_groups
from tests.audits.targets import test_check_answers, test_members, test_programs, test_recorded
from tests.cases.given_kind import KIND as GIVEN_TOY
from tests.cases.refusals import EVERY, Refused, rows, sets
from tests.cases.smallest_plans import smallest_plan
from tests.orchestrator.apollo import test_given_targets, test_plan_forget_sets, test_plan_refusals, test_watched_plans
from tests.orchestrator.cli import test_broken_plans
from tests.orchestrator.cli.refused_data import of_data, write_data_sets
from tests.orchestrator.cli.refused_points import of_points, write_points
from tests.orchestrator.cli.refused_weights import of_weights, write_weights
from tests.orchestrator.engine.plan import test_files, test_teams
from tests.orchestrator.engine.run import test_copies, test_tracking
from tests.orchestrator.given import test_forms
from tests.orchestrator.gnq import test_given as gnq_given
from tests.orchestrator.gnq import test_gradient_inversion_run, test_inversion_run, test_looks
from tests.orchestrator.gnq import test_pipeline as gnq_pipeline
from tests.orchestrator.mia import test_given as mia_given
from tests.orchestrator.mia import test_plan as mia_plan
from tests.orchestrator.tmia import test_given as tmia_given
from tests.orchestrator.tmia import test_pipeline as tmia_pipeline
from tests.orchestrator.toy import test_toy
from tests.orchestrator.toy.kind import KIND as TOY


def literally(parts: Any) -> str:
    """Return a regular expression of texts that are all in a line."""
    return "".join(f"(?=.*{re.escape(part)})" for part in ((parts,) if isinstance(parts, str) else parts))


def as_sets(change: Any) -> tuple[str, ...]:
    """Return what a table says to change as --set takes it."""
    return (change,) if isinstance(change, str) else sets(change) if isinstance(change, Mapping) else tuple(change)


TABLES: list[tuple[str, str, Callable[..., None]]] = [
    ("apollo", "apollo-fashion14", test_plan_refusals.test_broken_values_are_refused_with_path_value_and_remedy),
    ("apollo", "apollo-fashion14", test_plan_refusals.test_combinations_that_cannot_work_are_refused),
    ("mia", "mia-smoke", mia_plan.test_what_cannot_be_is_refused_in_a_line),
    ("tmia", "tmia-smoke", tmia_pipeline.test_what_cannot_work_is_refused_in_one_line),
    ("gnq", "gnq-smoke", gnq_pipeline.test_a_plan_that_cannot_work_is_refused_in_one_line),
    ("gnq", "gnq-smoke", test_inversion_run.test_impossible_searches_are_refused_in_one_line),
    ("gnq", "gnq-smoke", test_looks.test_looks_that_cannot_be_taken_are_refused_in_one_line),
]
"""Kind, plan, and a test over changes of it (one --set, several, or values by field) and what is said of them."""


def refused() -> Iterator[Refused]:
    """Yield every refused plan; ``write_files`` makes the files that they name."""
    for kind, source, test in TABLES:
        for change, said in rows(test):
            # of a plan of another kind before all
            wanted = "apollo" if change == {"audit.kind": "tmai"} else kind
            yield Refused(wanted, source, as_sets(change), literally(said))
    yield from of_apollo()
    yield from of_kinds()
    yield from of_targets()
    yield from of_files()
    yield from of_data()
    yield from of_weights()
    yield from of_points()


def of_apollo() -> Iterator[Refused]:
    """Yield those of Apollo whose tables are like no other."""
    for overrides, says in rows(test_watched_plans.test_plans_that_cannot_be_watched_are_refused):
        yield Refused("apollo", "apollo-fashion14", tuple(overrides), says)
    for forget, says in rows(test_plan_refusals.test_classes_and_ids_that_the_data_do_not_have_are_refused):
        yield Refused("apollo", "apollo-fashion14", (f"split.forget={forget}",), literally(says))
    for place, (_, part) in enumerate(rows(test_plan_forget_sets.test_files_that_hold_no_ids_are_refused)):
        yield Refused("apollo", "apollo-fashion14", (f"split.forget={{ids_file: ids-{place}.txt}}",), literally(part))


OTHERS: list[tuple[str, tuple[str, ...], str]] = [
    (
        "tmia",
        ("transfer.train_size=2000", "variants={}", "audit.mode=III", "audit.attacks=[yeom]"),
        "transfer.train_size is 2000; allowed: 1 to",
    ),
    (
        "tmia",
        ("audit.mode=III", "variants={}", "transfer.teacher=teacher.pt", "transfer.teacher_input=raw"),
        "teacher.pt: 1.weight has shape",
    ),
    ("tmia", ("audit.mode=III", "variants={}", "transfer.teacher=no.pt", "transfer.teacher_input=raw"), "no.pt"),
    *(
        ("tmia", ("variants={}", "audit.attacks=[nasr]", f"audit.reference_samples={count}"), said)
        for count, said in ((2, "at half of them, 2 or more"), (3, "with which a proxy could learn"))
    ),
    ("mia", ("compute.address=auto", "compute.device=cuda:1"), "on a cluster give cuda"),
    ("mia", ("compute.address=auto", "compute.engine=train"), "needs a number of workers"),
    ("mia", ("compute.address=auto", "compute.workers_per_model=2"), "on a cluster give the number of workers"),
    ("mia", ("compute.address=auto", "compute.device=cuda", "compute.gpus_per_worker=0"), "gpus_per_worker is 0"),
    ("mia", ("data.name=npz:gone.npz",), "gone.npz"),
]
"""Kind, changes of its smallest shipped plan, and what is said: what no other table has."""


def of_kinds() -> Iterator[Refused]:
    """Yield those of other kinds whose tables are like no other, and what is the same for all kinds."""
    for asked, said in rows(test_gradient_inversion_run.test_impossible_searches_are_refused_in_one_line):
        yield Refused("gnq", "gnq-smoke", sets({"audit.gradient_inversion": asked}), literally(said))
    for change, said in rows(gnq_pipeline.test_a_plan_that_does_not_fit_its_data_is_refused):
        yield Refused("gnq", "gnq-smoke", (change, "audit.bins=2"), literally(said))
    for kind, changes, said in OTHERS:
        yield Refused(kind, f"{kind}-smoke", changes, said)
    yield Refused("tmia", "tmia-smoke", ("transfer.train_size=2000",), "transfer.train_size is 2000",
                  by=("validate", "cost"))  # a sweep's settings take the place of variants # fmt: skip
    for former, name in rows(tmia_pipeline.test_former_names_of_fields_are_refused_with_the_new_ones):
        yield Refused("tmia", "tmia-smoke", (f"{former}=40",), literally((former, name)))
    for change, said in test_toy.REFUSED:
        yield Refused("toy", TOY.default_plan, (change,), literally(said))
    for compute, line in rows(test_teams.test_what_cannot_work_is_refused_in_one_line):
        values = {"workers": 2, "workers_per_model": 2, **compute}
        yield Refused("mia", "mia-smoke", sets({f"compute.{name}": value for name, value in values.items()}),
                      literally(line))  # fmt: skip
    for uri, said in rows(test_tracking.test_an_unusable_uri_is_refused_before_the_work):
        yield Refused("mia", "mia-smoke", (f"tracking.uri={uri}",), said)
    for place, (_, said) in enumerate(rows(test_groups.test_files_that_do_not_say_a_group_for_each_point_are_refused)):
        yield Refused("gnq", "gnq-smoke", ("data.name=npz:three.npz", f"data.groups=groups-{place}.csv"), said)
    for name in rows(test_groups.test_files_that_cannot_be_read_are_refused_in_one_line):
        yield Refused("mia", "mia-smoke", (f"data.groups={name[0]}",), "cannot be read: ")
    for name in ("apollo, exposed points", "apollo, memorised points"):
        yield Refused("apollo", f"{name}.yaml", ("data.groups=groups.csv",), "split.points is .*, which")
    yield Refused("gnq", "gnq.yaml", ("data.groups=groups.csv", "audit.held_out=2"), "")
    for kind in test_copies.SMALL:
        yield Refused(kind, f"{kind}-smoke", ("data.groups=one.csv",), "data.groups: a group has 1797 points")


def of_targets() -> Iterator[Refused]:
    """Yield those with a given model."""
    for change, said in mia_given.REFUSED:
        yield Refused("mia", "plan.yaml", sets(change), literally(said), "mia")
    even = ("split.classes=even", "target.weights=even.pt")
    yield Refused("mia", "plan.yaml", even, "classes that split.classes leaves out", "mia")
    for changes, said in tmia_given.REFUSALS:
        values = tmia_given.given_values(Path(), **{**changes, "compute.store": "store"})
        yield Refused("tmia", "tmia-smoke", sets(values), literally(said), "tmia")
    for changes, said in gnq_given.WRONG.values():
        yield Refused("gnq", "plan.yaml", tuple(changes), literally(said), "gnq")
    for changes, said in rows(test_given_targets.test_what_a_plan_cannot_say_beside_a_target):
        yield Refused("apollo", "finetuned.yaml", sets(changes), said, "apollo")
    yield Refused("apollo", "finetuned.yaml", ("target.forget=odd.txt",), "has 1 point outside target.members",
                  "apollo")  # fmt: skip
    yield Refused("apollo", "untouched.yaml", ("target.non_members=others.txt", "audit.attacks=[single_query]"),
                  "400 points are known as non-members", "apollo")  # fmt: skip
    labels = ("target.weights=http://localhost:1/answers", "target.served={gives: labels}")
    yield Refused("apollo", "untouched.yaml", labels, "u_lira reads posteriors", "apollo")
    yield from of_answers()
    yield from of_programs()
    for change, said in test_forms.UNSERVED.items():
        yield Refused("toy", "served.yaml", (change,), literally(said), "forms")


LABELS, SCORES = ("labels", "[label_gap]"), ("probabilities", "[loss]")
"""What recorded answers are, and attacks that read no more."""


def of_answers() -> Iterator[Refused]:
    """Yield those whose target is a table of recorded answers."""
    for kind, plan in (("mia", "plan.yaml"), ("tmia", "tmia-smoke"), ("apollo", "untouched.yaml")):
        base = tmia_given.given_values(Path(), **{"compute.store": "store"}) if kind == "tmia" else {}
        attack = {"apollo": "single_query", "tmia": "label_gap", "mia": "label_gap"}[kind]
        served = {"target.weights": "half.parquet", "target.served": {"gives": "labels"}, "audit.attacks": [attack]}
        seed = {"seed": 0}  # the first of the sweep's
        yield Refused(kind, plan, sets({**base, **served, **seed}), "has no answer to .* points", kind)
    for place, (gives, attacks, data, _, said) in enumerate(tables()):
        values = (f"target.weights=answers-{place}.parquet", f"target.served={{gives: {gives}}}",
                  f"audit.attacks={attacks}", f"data.name={data}", "split.classes=[0, 1, 2]")  # fmt: skip
        yield Refused("mia", "plan.yaml", values, said, "answers")


IDS: dict[str, Callable[[], bytes]] = {
    "words.onnx": test_programs.words,
    "words.ts": lambda: test_programs.saved(test_programs.Words()),
    "cast.onnx": lambda: test_programs.words(taken="FLOAT", cast=True),
    "cast.ts": lambda: test_programs.saved(test_programs.Words(cast=True)),
    "branch.ts": lambda: test_programs.saved(test_programs.Branching()),
}
"""Programs of seven token ids."""
IMAGES: dict[str, tuple[Callable[[], bytes], str]] = {
    "wide.onnx": (lambda: test_programs.of_images((1, 3, 4), 10), r"does not take inputs of shape \(1, 8, 8\)"),
    "few.onnx": (lambda: test_programs.of_images((1, 8, 8), 5), "5 scores for an input; there are 10 classes"),
    "few.ts": (lambda: test_programs.saved(test_programs.net(64, 5)), "5 scores for an input; there are 10 classes"),
    "wide.ts": (lambda: test_programs.saved(test_programs.net(12, 10)), r"does not take inputs of shape \(1, 8, 8\)"),
    "soft.ts": (lambda: test_programs.saved(nn.Sequential(test_programs.net(64, 10), nn.Softmax(1))),
                "gives probabilities"),
}  # fmt: skip
"""Programs of images, and why they are none of 8×8 pixels and ten classes that give logits."""


def of_programs() -> Iterator[Refused]:
    """Yield those whose target is a program that does not take the data, or not all, or gives other answers.

    A graph takes a process of its own each time that it is read, so that most are compared by one command alone.
    """
    few = ("validate",)
    for name in IDS:
        part, by = ("#out", few) if name.endswith(".onnx") else ("", EVERY)
        base = (f"target.weights={name}{part}", "audit.attacks=[loss]")
        if name.startswith("words"):
            yield Refused("mia", "plan.yaml", base, r"takes whole numbers \(int64\), and an input is", "mia", EVERY)
        tokens = (*base, "data.name=npz:tokens.npz")
        yield Refused(
            "mia", "plan.yaml", tokens, f"{name}.* does not take inputs of shape .* from 0 to 17, ", "mia", by
        )
    for name, (_, said) in IMAGES.items():
        by = few if name.endswith(".onnx") else EVERY
        yield Refused("mia", "plan.yaml", (f"target.weights={name}", "audit.attacks=[loss]"), said, "mia", by)
    for place, (_, said) in enumerate(test_programs.NO_GRAPHS.values()):
        values = (f"target.weights=none-{place}.onnx", "audit.attacks=[loss]")
        yield Refused("mia", "plan.yaml", values, said.replace("m\\.onnx", f"none-{place}.onnx"), "mia", few)


def tables() -> Iterator[tuple[str, str, str, dict[str, Any], str]]:
    """Yield tables of answers that are refused: what they give, attacks, data set, columns, what is said."""
    unread = test_recorded.test_what_may_mean_another_class_or_none_is_refused
    for columns, names, named in rows(unread):
        yield *LABELS, f"folder:{'-'.join(names)}", columns, named
    for columns, named in rows(test_recorded.test_tables_without_scores_are_refused):
        yield *SCORES, f"folder:{'-'.join(test_recorded.NAMES)}", columns, named
    for columns, gives, named in rows(test_check_answers.test_what_the_audit_would_refuse_is_refused):
        yield gives, LABELS[1] if gives == "labels" else SCORES[1], "npz:five.npz", columns, named


def of_files() -> Iterator[Refused]:
    """Yield those whose whole text is in question, and files that are given."""
    for place, (_, named) in enumerate(test_broken_plans.FILES.values()):
        yield Refused("apollo", f"broken-{place}.yaml", (), literally(named))
    for place, (_, part) in enumerate(rows(test_plan_refusals.test_garbled_files_are_refused_on_one_line)):
        yield Refused("apollo", f"garbled-{place}.yaml", (), literally(part))
    for place, (_, said) in enumerate(test_files.HOSTILE.values()):
        yield Refused("apollo", f"hostile-{place}.yaml", (), literally(said))
    for place, (name, _, said) in enumerate(rows(test_members.test_wrong_files_are_refused_in_one_line)):
        yield Refused("gnq", "nine.yaml", (f"target.members=wrong-{place}-{name}",), said, "nine")
    columns = test_members.test_second_columns_that_say_something_else_are_refused_by_name
    for place, (_, names) in enumerate(rows(columns)):
        yield Refused("gnq", "nine.yaml", (f"target.members=column-{place}.csv",), literally(names), "nine")


def write_files(folder: Path) -> None:
    """Leave the files that the refused plans name."""
    for name in ("mia", "tmia", "gnq", "apollo", "forms", "nine", "answers"):
        (folder / name).mkdir()
    for place, (text, _) in enumerate(rows(test_plan_forget_sets.test_files_that_hold_no_ids_are_refused)):
        (folder / f"ids-{place}.txt").write_text(text)
    write_data(folder)
    for name, texts in {
        "broken": (text for text, _ in test_broken_plans.FILES.values()),
        "garbled": (text for text, _ in rows(test_plan_refusals.test_garbled_files_are_refused_on_one_line)),
        "hostile": (text for text, _ in test_files.HOSTILE.values()),
    }.items():
        for place, text in enumerate(texts):
            (folder / f"{name}-{place}.yaml").write_text(text)
    write_targets(folder)
    write_data_sets(folder / "data")
    write_weights(folder / "weights")
    write_points(folder / "points")


def write_data(folder: Path) -> None:
    """Leave groups, plans to be grouped, and a data set of three points."""
    labels = np.arange(3) % 2
    np.savez(folder / "three.npz", inputs=np.random.default_rng(0).normal(size=(3, 8)).astype("f4"), labels=labels)
    tables = rows(test_groups.test_files_that_do_not_say_a_group_for_each_point_are_refused)
    for place, (text, _) in enumerate(tables):
        (folder / f"groups-{place}.csv").write_text(text)
    (folder / "broken.parquet").write_text("id,group\n")
    (folder / "one.csv").write_text("id,group\n" + "\n".join(f"{point},all" for point in range(1797)))
    pairs = "".join(f"{point},{point // 2}\n" for point in range(1797))
    (folder / "groups.csv").write_text(f"id,group\n{pairs}")
    for name in ("apollo, exposed points", "apollo, memorised points", "gnq"):
        (folder / f"{name}.yaml").write_text(smallest_plan(name, folder / "store").to_yaml())


def write_targets(folder: Path) -> None:
    """Leave untrained models, lists of points and plans that name them."""
    mlp = load_plan("tmia-smoke").model.architecture().build((1, 8, 8), 10, 0)
    for name in ("tmia", "mia"):
        torch.save(mlp.state_dict(), folder / name / "weights.pt")
        members = range(0, 3 * tmia_given.MEMBERS, 3) if name == "tmia" else range(mia_given.MEMBERS)
        (folder / name / "members.txt").write_text("\n".join(map(str, members)))
    (folder / "mia" / "plan.yaml").write_text(mia_given.PLAN)
    digits = load("digits")
    np.savez(folder / "mia" / "tokens.npz", inputs=(digits.inputs // 15).astype("f4"), labels=digits.labels)
    for name, make in {**IDS, **{name: make for name, (make, _) in IMAGES.items()}}.items():
        (folder / "mia" / name).write_bytes(make())
    for place, (make, _) in enumerate(test_programs.NO_GRAPHS.values()):
        (folder / "mia" / f"none-{place}.onnx").write_bytes(make())
    torch.save(make_model("mlp", {"hidden": [16]}).build((1, 8, 8), 5, 0).state_dict(), folder / "mia" / "even.pt")
    torch.save(make_model("mlp", {"hidden": [9]}).build((1, 8, 8), 10, 0).state_dict(), folder / "teacher.pt")
    torch.save(make_model("mlp", {"hidden": [8]}).build((1, 14, 14), 10, 0).state_dict(), folder / "gnq" / "weights.pt")
    (folder / "gnq" / "members.txt").write_text("\n".join(map(str, gnq_given.MEMBERS)))
    (folder / "gnq" / "plan.yaml").write_text(gnq_given.PLAN)
    place = folder / "apollo"
    np.savetxt(place / "members.txt", test_given_targets.MEMBERS, fmt="%d")
    np.savetxt(place / "forget.txt", test_given_targets.FORGET, fmt="%d")
    np.savetxt(place / "odd.txt", [*test_given_targets.FORGET[:30], 69999], fmt="%d")
    np.savetxt(place / "others.txt", np.setdiff1d(np.arange(70000), test_given_targets.MEMBERS)[:400], fmt="%d")
    for name in ("original", "finetuned", "untouched"):
        torch.save(test_given_targets.new_net().state_dict(), place / f"{name}.pt")
        (place / f"{name}.yaml").write_text(test_given_targets.plan_of(place, name).to_yaml())
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(KINDS, "toy", GIVEN_TOY.place)
        served = test_forms.plan("http://127.0.0.1:9/", {"gives": "logits"})
    (folder / "forms" / "served.yaml").write_text(served.to_yaml())
    write_nine(folder / "nine")
    for name, count in (("mia", 1797), ("tmia", 1797), ("apollo", 70000)):
        half = np.arange(0, count, 2)
        pq.write_table(pa.table({"id": half, "label": np.zeros(len(half), np.int64)}), folder / name / "half.parquet")
    write_answers(folder / "answers")


def write_nine(folder: Path) -> None:
    """Leave a data set of nine points and lists of them."""
    labels = np.arange(9) % 3
    np.savez(folder / "nine.npz", inputs=np.random.default_rng(0).normal(size=(9, 4)).astype("f4"), labels=labels)
    torch.save(make_model("mlp", {"hidden": [8]}).build((4,), 3, 0).state_dict(), folder / "w.pt")
    (folder / "nine.yaml").write_text(
        "audit: {kind: gnq}\ndata: {name: 'npz:nine.npz'}\nmodel: {name: mlp, settings: {hidden: [8]}}\n"
        "target: {weights: w.pt, members: all}\n"
    )
    for place, (name, text, _) in enumerate(rows(test_members.test_wrong_files_are_refused_in_one_line)):
        (folder / f"wrong-{place}-{name}").write_text(text)
    columns = test_members.test_second_columns_that_say_something_else_are_refused_by_name
    for place, (text, _) in enumerate(rows(columns)):
        (folder / f"column-{place}.csv").write_text(text)


def write_answers(folder: Path) -> None:
    """Leave tables of answers, and the data sets whose points and classes they name."""
    (folder / "plan.yaml").write_text(mia_given.PLAN.replace("members.txt", "all"))
    labels = np.arange(5) % 3
    np.savez(folder / "five.npz", inputs=np.random.default_rng(0).normal(size=(5, 4)).astype("f4"), labels=labels)
    for place, (_, _, data, columns, _) in enumerate(tables()):
        pq.write_table(pa.table(columns), folder / f"answers-{place}.parquet")
        kind, _, name = data.partition(":")
        if kind == "folder" and not (folder / name).exists():
            write_images(folder / name, name.split("-"))


def write_images(folder: Path, classes: list[str]) -> None:
    """Leave two images of each of the first three classes, named a to f, and one of each other."""
    letters = iter("abcdefghij")
    for place, name in enumerate(classes):
        (folder / name).mkdir(parents=True)
        for _ in range(2 if place < 3 else 1):
            letter = next(letters)
            Image.new("L", (4, 4), ord(letter)).save(folder / name / f"{letter}.png")
