"""The section ``split`` of a plan: pools, what is forgotten, which points are asked about, how many shadows."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, PlainSerializer, PlainValidator, ValidationError

from audits.apollo.design import partition
from audits.data.id_lists import FILES, Listed, comments_of, lines_of, read_list, refuse_commented
from audits.data.ids import Points, number_of
from audits.data.text_tables import text_of
from audits.errors import BadInput, how_many
from audits.home import expanded
from orchestrator.engine.plan.errors import PlanProblems, problems_of, shown
from orchestrator.engine.plan.sections import Positive, Section

if TYPE_CHECKING:
    from audits.apollo.design.partition import Split as Design


LIKE_A_NUMBER = re.compile(r"[+-]?[0-9][0-9.]*(e[+-]?[0-9]+)?", re.IGNORECASE)
"""What would be a number elsewhere, and is never taken for the name of a point."""


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


def checked_point(value: Any) -> int | str:
    """Return ``value`` if it can name a point: its id, or the name that the data set has for it."""
    text = str(value)
    number = None if isinstance(value, bool) or not isinstance(value, str | int | float) else number_of(text)
    if number is not None:
        return number
    if isinstance(value, str) and text.strip() and LIKE_A_NUMBER.fullmatch(text.strip()) is None:
        return value
    raise BadInput(f"{shown(value)} is no point; allowed: whole numbers from 0 on, and names of points")


class ForgetIds(Section):
    """Forget these points of the data set, on which every target trains."""

    ids: Annotated[tuple[Annotated[int | str, PlainValidator(checked_point)], ...], Field(min_length=1)]
    """Ids or names of the points."""
    comments: tuple[str, ...] = ()
    """Lines of a file of ids that are comments but might be names; refused where they name a point."""

    def indexed(self, points: Points | None) -> partition.ForgetIds:
        """Return the same with ids alone, if the ``points`` are known; raises BadInput for names that they lack."""
        ids: Any = self.ids
        if points is not None:
            refuse_commented(self.comments, points, "split.forget.ids_file")
        if points is not None and not all(isinstance(entry, int) for entry in ids):
            ids = tuple(points.ids([str(entry) for entry in ids], "split.forget.ids").tolist())
        return partition.ForgetIds(ids)


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
    """Return ``value`` with the points of ``ids_file`` in place of its path, relative to the current folder.

    The file is a list as ``audits.data.id_lists`` reads it; in one of any other ending than these several ids may stand
    in a line, apart by white space or commas, and so in .txt.
    """
    if "ids_file" not in value:
        return value
    path = value["ids_file"]
    if not isinstance(path, str) or not path:
        raise BadInput(f"split.forget.ids_file is {shown(path)}; allowed: the path of a file of point ids")
    what = f"split.forget.ids_file {path!r}"
    file = expanded(path)
    if file.exists() and not file.is_file():
        raise BadInput(f"{what} is not a file; write the ids into one")
    others = {name: entry for name, entry in value.items() if name != "ids_file"}
    if file.suffix in FILES and file.suffix != ".txt":
        listed = read_list(path, what)
        if not isinstance(listed, Listed) or listed.member is not None:
            raise BadInput(f"{what} says of points whether they are members; give the ids of those to forget alone")
        return {**others, "ids": [one if isinstance(one, str) else int(one) for one in listed.points]}
    try:
        text = text_of(file, what)
    except OSError as error:
        raise BadInput(f"{what} cannot be read: {error.strerror}") from None
    ids = [point for line in lines_of(text) for point in points_in_line(line)]
    return {**others, "ids": ids, **({"comments": comments} if (comments := comments_of(text)) else {})}


def points_in_line(line: str) -> list[str]:
    """Return the ids in a line, apart by white space or commas, or the one name that a line is that holds others."""
    words = line.replace(",", " ").split()
    return words if all(LIKE_A_NUMBER.fullmatch(word) for word in words) else [line]


def written_forget(value: float | ForgetClasses | ForgetIds) -> float | dict[str, Any]:
    """Return the forget set as a plan writes it."""
    if isinstance(value, float):
        return value
    written = value.model_dump(mode="json")
    return {name: entry for name, entry in written.items() if name != "comments" or entry}


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
            return how_many(len(self.forget.ids), "named point")
        return f"{self.forget * 100:g} % of {self.train_size} training points"

    def design(self, classes: Sequence[str] = (), points: Points | None = None) -> Design:
        """Return the sizes as the partition reads them; ``classes`` and ``points`` of the data turn names into indices.

        Without them names stay as they are, which is enough for everything but drawing the partition. Raises
        ``BadInput`` for a class or a point that the data do not have.
        """
        kind = partition.ExposedSplit if self.points == "exposed" else partition.Split
        forget: float | partition.ForgetClasses | partition.ForgetIds
        if isinstance(self.forget, ForgetClasses):
            forget = partition.ForgetClasses(self.forget.classes, self.forget.fraction)
            forget = forget.indexed(classes) if classes else forget
        else:
            forget = self.forget.indexed(points) if isinstance(self.forget, ForgetIds) else self.forget
        return kind(
            **self.model_dump(exclude={"candidates", "points", "forget"}),
            forget=forget,
            audited="random" if self.points == "random" else "memorised",
            candidates_forget=self.candidates.forget,
            candidates_unseen=self.candidates.unseen,
            candidates_retained=self.candidates.retained,
        )
