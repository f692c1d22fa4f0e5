"""Checks of the section ``split``: sizes that do not fit together, forget sets too small for their candidates."""

from __future__ import annotations

from audits.apollo.design.exposure import points_ranked
from audits.apollo.design.split import ForgetClasses, Split
from audits.errors import BadInput, how_many
from orchestrator.engine.plan.wording import multiple, repeats


def split_problems(split: Split) -> list[str]:
    """Return one line per reason why the design cannot be drawn, as far as the plan alone can tell."""
    return [
        *size_problems(split),
        *forget_problems(split),
        *retained_problems(split),
        *ranking_problems(split),
    ]


def size_problems(split: Split) -> list[str]:
    """Return what makes the sizes of ``split`` impossible together."""
    size, half = split.train_size, split.shadow_pool // 2
    drawn, unseen = size - len(split.forget_ids), split.targets * split.candidates_unseen
    rules = [
        (
            split.shadows % 4 == 0,
            f"split.shadows is {split.shadows}; half of them belong to each half of the shadow pool, in complementary "
            f"pairs, so that the design is balanced: use a multiple of 4, e.g. {multiple(split.shadows, 4)}",
        ),
        (
            split.offline_shadows % 2 == 0 and split.offline_shadows > 0,
            f"split.offline_shadows is {split.offline_shadows}; half of them belong to each half of the shadow pool: "
            f"use an even number, e.g. {max(2, split.offline_shadows + 1)}",
        ),
        (
            drawn <= split.target_pool,
            f"split.train_size is {size}, more than split.target_pool ({split.target_pool}); "
            "lower the one or raise the other",
        ),
        (
            size <= half,
            f"split.train_size is {size}, but half of split.shadow_pool holds {half} points; "
            f"use a shadow_pool of {4 * size} or more",
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


def forget_problems(split: Split) -> list[str]:
    """Return why the candidates do not fit into the forget sets; with classes the data decide, later."""
    forgotten, size = split.forget_count, split.train_size
    if forgotten is None:
        return repeated_classes(split)
    if forgotten < 1:
        return [f"split.forget is {split.forget}, which is less than one of {size} points; use {1 / size:g} or more"]
    per_set, most = split.targets_per_shadow_set * split.candidates_per_target, 2 * forgotten
    if split.forget_ids:
        named, fewer, remedy = how_many(forgotten, "id"), f"{forgotten} or fewer", "name more ids"
    else:
        named, fewer = f"{split.forget:g} of {size}", f"{forgotten} or fewer and more targets"
        remedy = "raise split.forget or split.train_size"
    points = how_many(forgotten, "point")
    rules = [
        (
            len(set(split.forget_ids)) == len(split.forget_ids),
            "split.forget.ids names a point twice; once is enough",
        ),
        (
            forgotten < size,
            f"split.forget: {named} would leave nothing to retain of {size} training points; forget fewer, or raise "
            "split.train_size",
        ),
        (
            split.candidates_forget <= forgotten,
            f"split.candidates.forget is {split.candidates_forget}, but a target forgets only {points} "
            f"({named}); use {fewer}, or {remedy}",
        ),
        (
            split.candidates_retained > 0 or split.most_forgotten_inside <= forgotten,
            f"split.candidates: each shadow forgets half of the {per_set} candidates of its set, but a target forgets "
            f"only {points}; use {most} candidates per set or fewer (candidates.forget, "
            f"candidates.unseen, targets_per_shadow_set), or {remedy}",
        ),
        (
            split.candidates_retained == 0 or split.most_forgotten_inside <= forgotten,
            f"split.candidates: each shadow forgets a quarter of the {per_set} candidates of its set, but a target "
            f"forgets only {points}; use {4 * forgotten - 1} candidates per set or fewer, or {remedy}",
        ),
        (
            split.candidates_retained == 0
            or max(split.candidates_retained, split.most_kept_inside) <= size - forgotten,
            f"split.candidates.retained is {split.candidates_retained} and a shadow keeps up to "
            f"{split.most_kept_inside} candidates, but models retain only {size - forgotten} points; ask about fewer",
        ),
    ]
    return [message for holds, message in rules if not holds]


def repeated_classes(split: Split) -> list[str]:
    """Return the classes that the forget set names more than once."""
    classes = split.forget.classes if isinstance(split.forget, ForgetClasses) else ()
    return [
        f"split.forget.classes: {name} is listed {count} times; once is enough"
        for name, count in repeats(str(entry) for entry in classes)
    ]


def retained_problems(split: Split) -> list[str]:
    """Return why retained candidates cannot be asked about in this design."""
    if not split.candidates_retained:
        return []
    problems = []
    if split.shadows % 8 and split.shadows % 4 == 0:
        problems.append(
            f"split.shadows is {split.shadows}; with candidates.retained every candidate is forgotten by a quarter and "
            f"kept by a quarter of each half: use a multiple of 8, e.g. {multiple(split.shadows, 8)}"
        )
    if isinstance(split.forget, ForgetClasses) and split.forget.fraction == 1:
        problems.append(
            f"split.candidates.retained is {split.candidates_retained}, but no target retains a point of the classes, "
            "and points of other classes are told apart by their label; use split.forget.fraction below 1, or 0"
        )
    return problems


def ranking_problems(split: Split) -> list[str]:
    """Return why the most memorised or most exposed points cannot be found or audited."""
    if split.audited == "random":
        return []
    try:
        points_ranked(split)
    except BadInput as error:
        return [str(error)]
    return []
