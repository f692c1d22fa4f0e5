"""Checks that look at more than one field of a plan: combinations that cannot work, and those that work badly."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from audits.data.partition import Split, overlap_warnings
from audits.errors import BadInput

if TYPE_CHECKING:
    from orchestrator.plan import Plan

NULLS_NEEDED = 10  # expected false positives below which a promised rate cannot be told from its neighbours


def contradictions(plan: Plan) -> list[str]:
    """Return one line per impossible combination: what it is and what to do."""
    return [
        *split_problems(plan.split.design()),
        *attack_problems(plan),
        *repeated_labels(plan),
        *rate_problems(plan),
        *gpu_problems(plan),
    ]


def split_problems(split: Split) -> list[str]:
    """Return what makes the sizes of ``split`` impossible together."""
    forgotten, size, half = split.forget_count, split.train_size, split.shadow_pool // 2
    per_set = split.targets_per_shadow_set * (split.candidates_forget + split.candidates_unseen)
    unseen = split.targets * split.candidates_unseen
    rules = [
        (
            split.shadows % 4 == 0,
            f"split.shadows is {split.shadows}; half of them belong to each half of the shadow pool, in complementary "
            f"pairs, so that the design is balanced: use a multiple of 4, e.g. {multiple_of_four(split.shadows)}",
        ),
        (
            split.offline_shadows % 2 == 0 and split.offline_shadows > 0,
            f"split.offline_shadows is {split.offline_shadows}; half of them belong to each half of the shadow pool: "
            f"use an even number, e.g. {max(2, split.offline_shadows + 1)}",
        ),
        (
            size <= split.target_pool,
            f"split.train_size is {size}, more than split.target_pool ({split.target_pool}); "
            "lower the one or raise the other",
        ),
        (
            size <= half,
            f"split.train_size is {size}, but half of split.shadow_pool holds {half} points; "
            f"use a shadow_pool of {4 * size} or more",
        ),
        (
            forgotten >= 1,
            f"split.forget is {split.forget:g}, which of {size} points is none; use {1 / size:g} or more",
        ),
        (
            split.candidates_forget <= max(1, forgotten),
            f"split.candidates.forget is {split.candidates_forget}, but a target forgets only {forgotten} points "
            f"({split.forget:g} of {size}); use {forgotten} or fewer, or raise split.forget",
        ),
        (
            math.ceil(per_set / 2) <= max(1, forgotten),
            f"split.candidates: each shadow forgets half of the {per_set} candidates of its set, but a target forgets "
            f"only {forgotten} points; use {2 * forgotten} candidates per set or fewer (candidates.forget, "
            "candidates.unseen, targets_per_shadow_set), or raise split.forget",
        ),
        (
            unseen < split.test_pool,
            f"split.candidates.unseen is {split.candidates_unseen}, for {split.targets} targets {unseen}, but "
            f"split.test_pool holds {split.test_pool}, some of which measure accuracy; use more than {unseen}",
        ),
        (
            split.targets_per_shadow_set <= split.targets,
            f"split.targets_per_shadow_set is {split.targets_per_shadow_set}; there are {split.targets} targets",
        ),
    ]
    return [message for holds, message in rules if not holds]


def multiple_of_four(number: int) -> int:
    """Return the next multiple of 4 from ``number`` on."""
    return -(-number // 4) * 4


def attack_problems(plan: Plan) -> list[str]:
    """Return what is wrong with the number of shadows that the search uses."""
    shadows = plan.audit.search.shadows
    if shadows is None:
        return []
    if shadows % 4:
        near = multiple_of_four(shadows)
        return [f"audit.search.shadows is {shadows}; use a multiple of 4, e.g. {near}, or null for all of them"]
    if shadows > plan.split.shadows:
        return [f"audit.search.shadows is {shadows}, more than split.shadows ({plan.split.shadows}); lower it"]
    return []


def repeated_labels(plan: Plan) -> list[str]:
    """Return the names that a table could not tell apart."""
    methods = [
        f"unlearning: {label!r} stands there {count} times; give each setting its own name with `as: name`"
        for label, count in repeats(entry.label for entry in plan.unlearning)
    ]
    attacks = [
        f"audit.attacks: {name!r} stands there {count} times; once is enough"
        for name, count in repeats(plan.audit.attacks)
    ]
    rates = [
        f"audit.fpr: {rate} stands there {count} times; once is enough"
        for rate, count in repeats(f"{rate:g}" for rate in plan.audit.fpr)
    ]
    return [*methods, *attacks, *rates]


def gpu_problems(plan: Plan) -> list[str]:
    """Return what is wrong with the share of a GPU per worker."""
    gpus = plan.compute.gpus_per_worker
    if gpus > 1 and gpus != int(gpus):
        return [f"compute.gpus_per_worker is {gpus}; allowed: 0 to 1, or a whole number"]
    return []


def repeats(words: Iterable[str]) -> list[tuple[str, int]]:
    """Return the words that occur more than once, with their counts."""
    return [(word, count) for word, count in Counter(words).items() if count > 1]


def rate_problems(plan: Plan) -> list[str]:
    """Return the promised false-positive rates that this many never-seen candidates cannot resolve."""
    problems = []
    for rate in plan.audit.fpr:
        if plan.nulls * rate < NULLS_NEEDED * (1 - 1e-9):
            needed = math.ceil(NULLS_NEEDED / rate * (1 - 1e-9))
            split = plan.split
            problems.append(
                f"audit.fpr {rate:g} cannot be resolved by {plan.nulls} unseen candidates ({split.targets} targets × "
                f"{split.candidates.unseen}): it needs {needed}, for {NULLS_NEEDED} expected false positives; "
                "raise split.targets or split.candidates.unseen, or promise a larger rate"
            )
    return problems


def weaknesses(plan: Plan) -> tuple[str, ...]:
    """Return what will weaken the result: shared training data, too few targets for an interval over targets."""
    lines = list(overlap_warnings(plan.split.design()))
    if plan.split.targets < 2:
        lines.append("split.targets is 1: nothing shows how much targets differ; use 5 or more for honest intervals")
    if min(plan.split.shadows, plan.audit.search.shadows or plan.split.shadows) < 8:
        lines.append(
            "fewer than 8 shadows: one pseudo-target per side and half is too few to promise a false-positive rate; "
            "use split.shadows of 8 or more"
        )
    if plan.split.targets_per_shadow_set > 1:
        lines.append(
            f"{plan.split.targets_per_shadow_set} targets share each set of shadows: intervals over targets hold for "
            "those shadows and do not cover the choice of shadows"
        )
    if plan.compute.address and "://" not in (plan.compute.store or ""):
        lines.append(
            "compute.store is a folder: every node of the cluster must see the same one; "
            "use a shared file system or a URI such as s3://"
        )
    if all(entry.method in ("identity", "retrain") for entry in plan.unlearning):
        lines.append("unlearning: only the controls; add a method that is worth auditing")
    return tuple(lines)


def check_against_data(plan: Plan) -> None:
    """Refuse a plan whose data set is not there, is too small for the pools, or does not fit the architecture.

    Raises ``BadInput`` (also the catalogue's own, for a data set that is unknown or missing).
    """
    from audits.data.catalogue import describe

    facts = describe(plan.data.name, plan.data.root)
    if not facts.present:
        raise facts.missing()
    needed = plan.split.design().points
    if facts.points and needed > facts.points:
        raise BadInput(
            f"split: target_pool + shadow_pool + test_pool need {needed} points, but {plan.data.name} has "
            f"{facts.points}; make the pools smaller"
        )
    if facts.shape:
        plan.model.architecture().build(facts.shape, len(facts.classes), seed=0)
