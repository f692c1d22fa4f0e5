"""The cells of a given model, and of the controls that are judged beside it: one model each.

A single model has no targets to resample. Its rates and its AUC have intervals over candidates and reference models
(``audits.statistics.one_target``): each attack judges again without every tenth of the reference models in turn
(``audits.tmia.again``). Null models are many and keep the intervals of ``audits.tmia.cells``.

Which null is the given model's non-member exchangeable with? With the same point under a reference model: neither saw
it, and given one recipe and size of the training set nothing else tells the two apart. That holds on average over
trainings; one model may be surer than most of everything. So the rate found on its own known non-members is part of
every cell, and where it is above β no rate of that cell is to be quoted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from audits.arrays import Bools, Floats
from audits.statistics.one_target import Interval, one_target_auc, one_target_rate
from audits.tmia.attacks import Ruling
from audits.tmia.cells import Columns, Judged, Tested, matrices_of, member_score, null_fields, null_outcome

ENDS = ("", "_low", "_high")
UNDEFINED = (None, None, None)
NO_SPAN = {f"{name}_t_{end}": None for name in ("precision", "coverage", "fpr") for end in ("low", "high")}


@dataclass(frozen=True)
class Said:
    """What an attack says of one model: ``score`` (M,), larger = more member-like, and ``called`` (M,) a member."""

    score: Floats
    called: Bools

    def on(self, chosen: Bools) -> Said:
        """Return what is said of the ``chosen`` (M,) candidates."""
        return Said(self.score[chosen], self.called[chosen])


def said_by(ruling: Ruling, model: int) -> Said:
    """Return what a ruling says of one target, candidates in their order; those at which it failed score below all."""
    order = np.argsort(ruling.rows)
    p = None if ruling.p is None else ruling.p["target"][model]
    return Said(
        lowered(member_score(ruling.statistic["target"][model], p))[order], ruling.decision["target"][model][order]
    )


def lowered(score: Floats) -> Floats:
    """Return scores with those that are missing below all others, finite ones as they are."""
    known = score[np.isfinite(score)]
    least = float(known.min()) - 1.0 if known.size else 0.0
    return np.where(np.isnan(score) | np.isneginf(score), least, score)


def given_cells(
    columns: Columns,
    rulings: Mapping[str, Ruling],
    again: Mapping[str, Sequence[Ruling]],
    selectors: Sequence[str],
    tested: Tested,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the cells of the given model, in the order of ``audits.tmia.cells.cells``, and those of its controls.

    ``columns``: the table of scores, whose targets are the given model and then the controls; ``rulings`` and
    ``again``: by attack, with all reference models and without each group of them.
    """
    everyone = [matrices_of(name, columns, selectors) for name in rulings]
    places = [(name, each, each.sets[name]) for name in selectors for each in everyone]
    everybody = [each for each in everyone if each.attack.access != "labels"]
    places += [("all", each, np.ones(each.member.shape[1], np.bool_)) for each in everybody]
    given, controls = [], []
    for selection, seen, chosen in places:
        name, asked = seen.attack.name, seen.on(chosen)
        for model in range(len(seen.member)):
            without = [said_by(each, model).on(chosen) for each in again[name]]
            found = numbers(asked, model, said_by(rulings[name], model).on(chosen), without, tested.level)
            cell = {"selection": selection, "attack": name, "access": seen.attack.access, **found}
            if model:
                controls.append({**cell, "control": model - 1})
            else:
                given.append({**cell, **promise(asked, selection, found["non_members"], tested)})
    return given, controls


def numbers(seen: Judged, model: int, said: Said, without: Sequence[Said], level: float) -> dict[str, Any]:
    """Return counts, rates and AUC of what is ``said`` of one model, ``model`` counted among the targets."""
    member, called = seen.member[model], said.called
    rates = {
        "precision": rate(member[called], [member[each.called] for each in without], level),
        "coverage": rate(called[member], [each.called[member] for each in without], level),
        "fpr": rate(called[~member], [each.called[~member] for each in without], level),
        "auc": area(said.score, member, [each.score for each in without], level),
    }
    return {
        "candidates": len(member),
        "true_positives": int((called & member).sum()),
        "false_positives": int((called & ~member).sum()),
        "members": int(member.sum()),
        "non_members": int((~member).sum()),
        **{f"{name}{end}": part for name, found in rates.items() for end, part in zip(ENDS, found, strict=True)},
        "failed": int(np.isnan(seen.statistic["target"][model]).sum()),
        "resampled": "points and reference models" if without else "points",
    }


def promise(seen: Judged, selection: str, non_members: int, tested: Tested) -> dict[str, Any]:
    """Return what an attack promises of a selection, what that allows for, and the rate on null models."""
    null, promises = null_outcome(seen, tested), seen.attack.promises(selection)
    return {
        "beta": tested.beta,
        "attained": seen.attack.attained(tested.beta, len(seen.statistic["reference"]), tested.pool_sets),
        "targets": 1,
        "expected_false_positives": tested.beta * non_members if promises else None,
        **NO_SPAN,
        **null_fields(null, promises),
        "queries_per_point": seen.queries,
    }


def rate(hits: Bools, without: Sequence[Bools], level: float) -> Interval | tuple[None, None, None]:
    """Return the share of ``hits`` (n,) that are true with its interval; undefined for 0/0."""
    if not hits.size:
        return UNDEFINED
    return one_target_rate(hits.astype(np.float64), [each.astype(np.float64) for each in without if each.size], level)


def area(score: Floats, member: Bools, without: Sequence[Floats], level: float) -> Interval | tuple[None, None, None]:
    """Return the AUC with its interval; undefined without members, or without others."""
    if member.all() or not member.any():
        return UNDEFINED
    return one_target_auc(score, member, without, level)
