"""The section ``split`` of a plan: pools, what is forgotten, which points are asked about, how many shadows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, PlainSerializer, PlainValidator, ValidationError

from audits.apollo.design import partition
from audits.errors import BadInput
from orchestrator.engine.plan.errors import PlanProblems, problems_of, shown
from orchestrator.engine.plan.sections import Positive, Section

if TYPE_CHECKING:
    from audits.apollo.design.partition import Split as Design


def checked_class(value: Any) -> int | str:
    """Return ``value`` if it can name a class: its index or its name."""
    if (isinstance(value, int) and not isinstance(value, bool) and value >= 0) or (isinstance(value, str) and value):
        return value
    raise BadInput(f"split.forget.classes has {shown(value)}; allowed: indices from 0 on and names of classes")


class ForgetClasses(Section):
    """Forget a target's training points of these classes (indices or names), or a fraction of them."""

    classes: Annotated[tuple[Annotated[int | str, PlainValidator(checked_class)], ...], Field(min_length=1)]
    """Indices or names of the classes."""
    fraction: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Share of their points that is forgotten."""


class ForgetIds(Section):
    """Forget these points of the data set, on which every target trains."""

    ids: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1)]
    """Ids of the points."""


def checked_forget(value: Any) -> float | ForgetClasses | ForgetIds:
    """Return the forget set that ``value`` describes; a file of ids is read here, so a resolved plan holds the ids."""
    if isinstance(value, ForgetClasses | ForgetIds):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        if 0 < value < 1:
            return float(value)
        wanted = "above 0" if value <= 0 else "below 1"
        raise BadInput(f"split.forget is {shown(value)}; allowed: {wanted} (a fraction of split.train_size)")
    if not isinstance(value, dict) or len({"classes", "ids", "ids_file"} & value.keys()) != 1:
        raise BadInput(
            f"split.forget is {shown(value)}; allowed: a fraction, {{classes: [..], fraction: 1.0}}, {{ids: [..]}} "
            "or {ids_file: PATH}"
        )
    kind = ForgetClasses if "classes" in value else ForgetIds
    try:
        return kind.model_validate_json(json.dumps(with_ids_read(value)))
    except ValidationError as error:
        raise PlanProblems(problems_of(error, kind, ("split", "forget"))) from None


def with_ids_read(value: dict[str, Any]) -> dict[str, Any]:
    """Return ``value`` with the ids of ``ids_file`` in place of its path, relative to the current folder.

    The file holds whole numbers, apart by white space or commas; what follows a # is left out.
    """
    if "ids_file" not in value:
        return value
    path = value["ids_file"]
    if not isinstance(path, str) or not path:
        raise BadInput(f"split.forget.ids_file is {shown(path)}; allowed: the path of a file of point ids")
    if Path(path).expanduser().exists() and not Path(path).expanduser().is_file():
        raise BadInput(f"split.forget.ids_file {path!r} is not a file; write the ids into one")
    try:
        lines = Path(path).expanduser().read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise BadInput(f"split.forget.ids_file {path!r} cannot be read: {reason}") from None
    words = " ".join(line.partition("#")[0] for line in lines).replace(",", " ").split()
    odd = next((word for word in words if not (word.isascii() and word.isdecimal())), None)
    if odd is not None:
        raise BadInput(f"split.forget.ids_file {path!r} has {odd!r}; allowed: whole numbers, one or more a line")
    others = {name: entry for name, entry in value.items() if name != "ids_file"}
    return {**others, "ids": [int(word) for word in words]}


def written_forget(value: float | ForgetClasses | ForgetIds) -> float | dict[str, Any]:
    """Return the forget set as a plan writes it."""
    return value if isinstance(value, float) else value.model_dump(mode="json")


class Candidates(Section):
    """Points per target on which the attacks decide: forgotten, never seen and, if any, retained ones."""

    forget: Positive = 50
    """Candidates among the forgotten points, a target."""
    unseen: Positive = 50
    """Candidates among points of the test pool, a target."""
    retained: Annotated[int, Field(ge=0)] = 0
    """Candidates among the points that are kept, a target; with them attacks tell three groups apart."""


class Split(Section):
    """How the data are cut: target pool (a), shadow pool (b) in two disjoint halves, test pool (c), in points.

    ``points``: candidates at random, those that a population of ``ranking_models`` memorises most, or those that are
    most exposed by gradient uniqueness, seen while up to ``ranking_models`` models train.
    """

    targets: Positive = 8
    """Target models, each with training points of its own."""
    train_size: Positive = 500
    """Points that a model trains on."""
    target_pool: Positive = 4000
    """Points of pool (a), from which targets train."""
    shadow_pool: Positive = 18000
    """Points of pool (b), in two disjoint halves, from which shadows train."""
    test_pool: Positive = 2000
    """Points of pool (c): never-seen candidates, and a measure of accuracy."""
    forget: Annotated[
        float | ForgetClasses | ForgetIds, PlainValidator(checked_forget), PlainSerializer(written_forget)
    ] = 0.1
    """What a target forgets: a share of its training points, classes, or ids of points (a file of ids is read into the
    plan)."""
    candidates: Candidates = Candidates()
    shadows: Annotated[int, Field(ge=4)] = 16
    """Shadows of a set, half of them on each half of the pool; a multiple of 4, of 8 with retained candidates."""
    offline_shadows: Annotated[int, Field(ge=0)] = 8
    """Shadows that train on no candidate, half of them on each half of the pool; even."""
    targets_per_shadow_set: Positive = 1
    """Targets that share a set of shadows. Above 1 intervals hold for these shadows."""
    points: Literal["random", "memorised", "exposed"] = "random"
    ranking_models: Positive = 32
    """Models by which points are ranked."""

    @property
    def forget_share(self) -> float | None:
        """The fraction of each training set that is forgotten, where the plan says one."""
        return self.forget if isinstance(self.forget, float) else None

    def forget_words(self) -> str:
        """Return what is forgotten as a reader would say it, e.g. ``10 % of 500 training points``."""
        if isinstance(self.forget, ForgetClasses):
            names = ", ".join(str(entry) for entry in self.forget.classes)
            part = "all" if self.forget.fraction == 1 else f"{self.forget.fraction * 100:g} % of the"
            return f"{part} training points of class {names}"
        if isinstance(self.forget, ForgetIds):
            return f"{len(self.forget.ids)} named points"
        return f"{self.forget * 100:g} % of {self.train_size} training points"

    def design(self, classes: Sequence[str] = ()) -> Design:
        """Return the sizes as the partition reads them; ``classes`` of the data turn names of classes into indices.

        Without them names stay as they are, which is enough for everything but drawing the partition. Raises
        ``BadInput`` for a class that the data do not have.
        """
        kind = partition.ExposedSplit if self.points == "exposed" else partition.Split
        forget: float | partition.ForgetClasses | partition.ForgetIds
        if isinstance(self.forget, ForgetClasses):
            forget = partition.ForgetClasses(self.forget.classes, self.forget.fraction)
            forget = forget.indexed(classes) if classes else forget
        else:
            forget = partition.ForgetIds(self.forget.ids) if isinstance(self.forget, ForgetIds) else self.forget
        return kind(
            **self.model_dump(exclude={"candidates", "points", "forget"}),
            forget=forget,
            audited="random" if self.points == "random" else "memorised",
            candidates_forget=self.candidates.forget,
            candidates_unseen=self.candidates.unseen,
            candidates_retained=self.candidates.retained,
        )
