"""Experiments on transfer learning in TMIA's attacks II and III: Fig. 3 and Table 2 of the paper, and a ladder.

Who learns what on the other side of the transfer is said by the plan where it names a data set there: its own
``transfer.data``, or those of its variants in the attack's mode. Else *near*: teacher and student take the even and the
odd classes of one data set; and *far*: the other side has another data set with images of the same shape.
"""

from __future__ import annotations

from itertools import product
from typing import Any

from audits.data.catalogue import describe
from audits.models import make_model
from audits.models.layers import layers_of
from tune_spaces.registry import Settings, Sweep, sweep
from tune_spaces.tmia import ALONE, FILLER, NO_FILE, POOL, Changes, Values, architectures_of, attack, even, taking_part

FAR = (
    "digits?size={side}",
    "fashion-mnist?size={side}",
    "flowers102?size={side}",
    "caltech101?size={side}",
    "cifar100",
)
Other = tuple[str | None, Any, int]
"""The other side of a transfer: its data set (None: the plan's own), its classes, points to train on."""

LEFT = 2 / 3  # of a small data set's points are trained on at most; the others measure accuracy
SHARES = (0.0, 0.5, 1.0)  # of the student's classes that are the teacher's
OVERFITTED = 8  # times the plan's epochs: targets of the default then learn their training set by heart
LADDER = ("tmia_posterior", "tmia_vector", "lira_oracle")
WANTS_LARGE_IMAGES = "inception_v3"  # left out of Table 2, whose students of CIFAR-100 it cannot read


def frozen_layers(plan: Values) -> Settings:
    """Return attack II with every number of frozen layers that the plan's model allows, for each kind of student.

    Students are those that the plan names, with the plan's sizes; else near and far ones, of teachers of the even
    classes. Teachers are the same in all settings of a name, and where the plan's variants change students alone; so
    they are shared. Far is left out where no data set of images of the plan's shape is there.
    """
    size = plan["transfer"]["train_size"]
    students = named_sides(plan, "II")
    if not students:
        own, other = plan["split"]["classes"] or "even", plan["transfer"]["classes"] or "odd"
        sides: dict[str, Other] = {"near": (None, other, size), **far(plan, size)}
        teachers = part(plan, own, plan["split"]["train_size"])
        students = {name: {**teachers, **other_side(*side)} for name, side in sides.items()}
    return {
        f"{name}/n_frozen={count}": {**ALONE, **attack("II"), **changes, **NO_FILE, "transfer.n_frozen": count}
        for name, changes in students.items()
        for count in range(layers(plan))
    }


def attack_three(plan: Values) -> Settings:
    """Return attack III on fine-tuned students: without a teacher, and with each teacher.

    Where the plan's variants name students and teachers of attack III, each of them with each architecture of the
    plan's size: the cells of the paper's Table 2. Where the plan itself names the teachers' data, its own students,
    without and with these teachers. Else students of the odd classes, and teachers that are near or far. Without a
    teacher the models are the same, trained from random weights: attack I by the rule of attack III, each model's own
    label. A ``true label`` is for an attacker who knows the candidates' classes.
    """
    named, given = named_sides(plan, "III"), plan["transfer"]["data"]
    if named and not given:
        models = {name: own for name, own in architectures_of(plan).items() if name != WANTS_LARGE_IMAGES}
        return {
            f"{student}/{model}": {**ALONE, **attack("III"), **changes, **NO_FILE, "model": architecture}
            for student, changes in named.items()
            for model, architecture in models.items()
        }
    if given:
        shared, first = {**ALONE}, next(iter(named))
        teachers = named
    else:
        size = plan["split"]["train_size"]
        own, other = plan["split"]["classes"] or "odd", plan["transfer"]["classes"] or "even"
        shared, first = {**ALONE, **part(plan, own, size // 2)}, "near"
        sides: dict[str, Other] = {"near": (None, other, size), **far(plan, size)}
        teachers = {name: other_side(*side) for name, side in sides.items()}
    found = {name: {**shared, **attack("III"), **changes} for name, changes in teachers.items()}
    return {
        "none": {**shared, **attack("I"), "audit.star": "own"},
        first: found[first],
        f"{first}/true label": {**found[first], "audit.star": "true"},
        **found,
    }


def ladder(plan: Values) -> Settings:
    """Return attack II from where it must find something to where it may not, so that its null can be read.

    Teachers learn the even classes; students as many classes, of which none, half or all are the teachers' own.
    Teachers fit as the plan's models do, or learn ``OVERFITTED`` times as many epochs, which students do not. Every
    number of frozen layers. Each model's own maximum and its whole posteriors are two attacks; ``true label`` knows the
    candidates' classes where students have them, on the same models. An oracle bounds what one confidence can show.
    """
    number = len(describe(plan["data"]["name"], plan["data"]["root"]).classes)
    teachers, others = list(range(0, number, 2)), list(range(1, number, 2))
    epochs, recipe = plan["recipe"]["epochs"], plan["transfer"]["recipe"] or plan["recipe"]
    fits: dict[str, Changes] = {
        "normal": {},
        "over-fitted": {"recipe.epochs": OVERFITTED * epochs, "transfer.recipe": recipe},
    }
    shared = {**ALONE, **attack("II"), **part(plan, "even", plan["split"]["train_size"])}
    shared |= {"transfer.data": None, "audit.selectors": ["none"], "audit.attacks": list(LADDER)}
    found: dict[str, Changes] = {}
    for share, (fit, trained), count in product(SHARES, fits.items(), range(layers(plan))):
        common = round(share * len(teachers))
        classes = sorted([*teachers[:common], *others[: len(teachers) - common]])
        name = f"shared={common}of{len(teachers)}/{fit}/n_frozen={count}"
        found[name] = {**shared, **trained, "transfer.classes": classes, "transfer.n_frozen": count}
        if common:
            found[f"{name}/true label"] = {**found[name], "audit.star": "true"}
    return found


def named_sides(plan: Values, mode: str) -> dict[str, Changes]:
    """Return the other sides for which the plan names a data set: name → dotted fields that a setting changes.

    The plan's own ``transfer.data`` alone where it is given, under the name of that set; else those of its variants in
    ``mode``, under the variant's name without the mode.
    """
    given = plan["transfer"]["data"]
    if given:
        return {short(given["name"]): {}}
    return {
        name.removeprefix(f"{mode}-"): dict(changes)
        for name, changes in plan["variants"].items()
        if changes.get("audit.mode") == mode and names_data(changes)
    }


def names_data(changes: Values) -> bool:
    """Does a variant name a data set of the other side, as a field or within the whole section?"""
    section = changes.get("transfer") or {}
    return bool(changes.get("transfer.data") or changes.get("transfer.data.name") or section.get("data"))


def short(name: str) -> str:
    """Return ``pubfig83`` of ``folder:faces/pubfig83?size=100``: the name of a data set without place and options."""
    return name.partition("?")[0].rpartition(":")[2].rstrip("/").rpartition("/")[2]


def other_side(data: str | None, classes: Any, train_size: int) -> Changes:
    """Return the other side of the transfer; ``data`` None: the plan's own set."""
    return {
        "transfer.data": data and {"name": data, "root": None},
        "transfer.classes": classes,
        "transfer.train_size": train_size,
    }


def part(plan: Values, classes: Any, train_size: int) -> Changes:
    """Return the sizes with which ``classes`` of the plan's data set suffice for its design.

    Training sets stay as large as asked for if these classes hold candidates, ``POOL`` of them for the attacker
    and ``FILLER`` of filler; else all shrink. Sizes stay too where nothing is known of the data; a run then warns of
    too little filler.
    """
    facts = describe(plan["data"]["name"], plan["data"]["root"])
    audit, split = plan["audit"], plan["split"]
    asked, pool = split["candidates"], split["attacker_points"]
    points = taking_part(facts.points, len(facts.classes or ()), classes)
    if points:
        room = POOL + FILLER
        if room * train_size + min(asked, even(train_size)) > points:
            train_size = points // (room + 1)  # as many candidates as a training set has points, at most
        asked = min(asked, even(train_size))
        pool = min(pool, points - asked - FILLER * train_size)
    samples = min(audit["reference_samples"], pool - audit["reconstruction"]["points"])
    return {
        "split.classes": classes,
        "split.train_size": train_size,
        "split.candidates": asked,
        "split.attacker_points": pool,
        "split.filler": None,
        "audit.asked": min(audit["asked"], asked),
        "audit.reference_samples": samples,
    }


def far(plan: Values, train_size: int) -> dict[str, Other]:
    """Return ``far`` → (data set, all of its classes, points to train on), or nothing where there is no such set.

    It is the first of ``FAR`` that is there, is not the plan's own, and has images of the same shape.
    """
    facts = describe(plan["data"]["name"], plan["data"]["root"])
    if len(facts.shape) != 3:
        return {}
    for form in FAR:
        name = form.format(side=facts.shape[1])
        found = describe(name)
        if found.present and found.shape == facts.shape and name.partition("?")[0] != facts.name.partition("?")[0]:
            return {"far": (name, None, min(train_size, int(LEFT * found.points)))}
    return {}


def layers(plan: Values) -> int:
    """Return how many numbers of frozen layers the plan's model allows, 0 among them: as many as it has layers."""
    import torch

    facts = describe(plan["data"]["name"], plan["data"]["root"])
    with torch.device("meta"):  # weights are not made
        model = make_model(plan["model"]["name"], plan["model"]["settings"]).build(facts.shape, 2, seed=0)
    return len(layers_of(model))


for name, title, varies, makes in (
    (
        "tmia-frozen-layers",
        "Attack II, a student about its teacher's training set, with every number of frozen layers: the plan's own "
        "students, or near and far ones",
        frozen_layers,
        "Fig. 3 of the paper",
    ),
    (
        "tmia-attack-3",
        "Attack III, a student about its own training set: the plan's students and teachers, or none, near and far",
        attack_three,
        "Table 2 of the paper",
    ),
    (
        "tmia-transfer-ladder",
        "Attack II from a positive control to the paper's case: classes in common × fit × frozen layers × statistic",
        ladder,
        "what a null of attack II means",
    ),
):
    sweep(Sweep(name, title, "tmia-fashion14", varies, "precision of tmia_distance", makes))
