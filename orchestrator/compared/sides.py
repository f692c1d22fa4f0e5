"""The sides of a comparison: finished runs, or settings of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from audits.errors import BadInput, did_you_mean
from audits.statistics.judged import Judged
from orchestrator.compared.data import DataOf, data_of
from orchestrator.compared.shadow_models import with_shadows
from orchestrator.engine.kind import ScoresTable
from orchestrator.engine.run.fingerprints import Fingerprints, queried, questions
from orchestrator.kinds import kind_named
from orchestrator.report.result import read_result
from orchestrator.report.rows import read_row
from orchestrator.scored.files import read_parquet
from orchestrator.scored.layouts.own import KIND as SCORED
from orchestrator.scored.layouts.own import judged_of

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Said:
    """What one ``attack`` said of one ``method`` (an unlearning method, an arm; "" where a kind has none).

    ``own_shadows``: each unit of ``judged`` has shadow models that no other unit has.
    """

    method: str
    attack: str
    judged: Judged = field(repr=False)
    own_shadows: bool = True

    @property
    def setting(self) -> str:
        """The setting that the attack was run in."""
        return self.judged.setting

    @property
    def name(self) -> str:
        """The attack as tables name it, its method before it."""
        return self.judged.attack

    @property
    def place(self) -> tuple[str, str]:
        """Setting and name."""
        return self.judged.place


@dataclass(frozen=True)
class Side:
    """A run, or one setting of it, by its label: what its attacks said, setting by setting.

    ``modes``: setting → its mode, in a kind that has modes; sides of other kinds or modes ask other questions.
    ``data``: what decides whether points of one id are one point. ``controls``: methods that every run of the kind has,
    by whatever names; ``made``: method → its settings, where the plan gives them. ``void``: setting and attack of lines
    that broke a nominal rate, so that no hit rate of theirs may be quoted. ``given``: method ("" where a kind has none)
    → which of a user's models its scores are of; absent where they are of models that the plan trains.
    """

    label: str
    folder: Path
    setting: str | None
    kind: str
    seed: int
    modes: Mapping[str, str]
    data: DataOf
    said: tuple[Said, ...] = field(repr=False)
    controls: tuple[str, ...] = ()
    made: Mapping[str, Any] = field(default_factory=dict, repr=False)
    void: frozenset[tuple[str, str]] = frozenset()
    given: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def settings(self) -> list[str]:
        """The settings of which there are scores."""
        return list(dict.fromkeys(each.setting for each in self.said))

    @property
    def methods(self) -> list[str]:
        """The methods of which there are scores, "" where the kind has none."""
        return list(dict.fromkeys(each.method for each in self.said))

    @property
    def attacks(self) -> list[str]:
        """The attacks of which there are scores, without their methods."""
        return list(dict.fromkeys(each.attack for each in self.said))


def read_side(folder: Path) -> Side:
    """Return the finished run in a folder.

    Raises BadInput for one that is not finished, of which there are no scores, or whose scores are not its own.
    """
    document = read_result(folder)
    if document.get("aggregate_only"):
        raise BadInput(
            f"{folder} cannot be compared: it was run with --aggregate-only and kept no scores; run it again without "
            "this option, into another --out"
        )
    kind, plan = str(document["kind"]), document["plan"]
    check_parts(document, str(folder / "result.json"))
    made = made_by(document)
    controls = controls_of(made, table) if (table := None if kind == SCORED else kind_named(kind).judged) else ()
    scores = read_parquet(folder / "scores.parquet")
    judged = judged_of(scores, kind)
    if not judged:
        raise BadInput(f"{folder} has no attack that can be compared")
    prints = fingerprints(folder, document, judged)
    return Side(
        label=folder.name,
        folder=folder,
        setting=None,
        kind=kind,
        seed=int(document["seed"]),
        modes={entry["setting"]: entry["mode"] for entry in document["settings"] if "mode" in entry},
        data=data_of(str(folder), plan, prints.data if prints else None, kind == SCORED),
        said=tuple(said_of(judged, table, scores)),
        controls=controls,
        made={name: entries[0] for name, entries in made.items()},
        void=void_of(document),
        given=given_of(plan, made, controls),
    )


def given_of(plan: Mapping[str, Any], made: Mapping[str, Sequence[Any]], controls: Sequence[str]) -> dict[str, str]:
    """Return the methods whose scores are of models that a user brought, each with which; see ``Side.given``."""
    if not (target := plan.get("target")):
        return {}
    if not made:
        return {"": "the given model"}
    found = {name: "the given model" for name in made if name not in controls}
    if isinstance(target, Mapping) and target.get("original") is not None:
        before = [name for name in controls if any(each["method"] == "identity" for each in made.get(name, ()))]
        found |= dict.fromkeys(before, "the given model before unlearning")
    return found


def check_parts(document: Mapping[str, Any], where: str) -> None:
    """Raise BadInput for a result, from the file ``where``, whose parts are not what a comparison reads of them."""
    kind, plan, rows = document["kind"], document["plan"], document["table"]
    if kind != SCORED:
        try:
            kind_named(kind)
        except BadInput as error:
            raise BadInput(f"{where}: {error}") from None
    settings: list[Any] = [each["overrides"] for each in document["settings"]]
    lists = [plan.get("unlearning"), *(each.get("unlearning") for each in settings if isinstance(each, Mapping))]
    for name, fits in (
        ("plan.data is no section", kind == SCORED or isinstance(plan.get("data"), Mapping)),
        ("overrides of a setting are no section", all(isinstance(each, Mapping) for each in settings)),
        ("unlearning is no list of methods", all(lists_methods(entries or []) for entries in lists)),
        (
            "table is no list of lines with setting and attack",
            all(isinstance(row, Mapping) and (not row.get("void") or {"setting", "attack"} <= {*row}) for row in rows),
        ),
    ):
        if not fits:
            raise BadInput(f"{where} is damaged: {name}; take it from a copy, or run the audit again")


def lists_methods(entries: Any) -> bool:
    """Say whether a value of a plan is a list of entries that each name a method."""
    return isinstance(entries, Sequence) and all(
        isinstance(each, Mapping) and isinstance(each.get("method"), str) for each in entries
    )


def fingerprints(folder: Path, document: Mapping[str, Any], judged: Sequence[Judged]) -> Fingerprints | None:
    """Return the fingerprints of a result, None of earlier versions; raises BadInput for scores of another run."""
    if (raw := document.get("fingerprints")) is None:
        return None
    found = read_row(Fingerprints, raw, f"{folder / 'result.json'}: fingerprints")
    here = questions(queried(judged))
    if here["points"] != dict(found.points) or here["members"] != dict(found.members):
        raise BadInput(
            f"{folder / 'scores.parquet'} is not that of result.json beside it: their points or members differ; put "
            "both files of one run there, or run it again"
        )
    return found


def said_of(judged: Sequence[Judged], table: ScoresTable | None, scores: pa.Table) -> list[Said]:
    """Return attacks with their methods apart, and with units that have shadow models of their own where there are."""
    methods: list[str] = []
    if table and table.method:
        methods = sorted(set(scores[table.method].to_pylist()), key=len, reverse=True)
    found = []
    for each, own in with_shadows(judged, table, scores):
        method = next((name for name in methods if each.attack.startswith(f"{name}.")), "")
        found.append(Said(method, each.attack.removeprefix(f"{method}.") if method else each.attack, each, own))
    return found


def made_by(document: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return unlearning method → what it is: the entries of the plan, and of settings with methods of their own.

    Entries are without the name that they give themselves (``as``).
    """
    lists = [
        document["plan"].get("unlearning"),
        *(each["overrides"].get("unlearning") for each in document["settings"]),
    ]
    found: dict[str, list[Any]] = {}
    for entry in (entry for entries in lists for entry in entries or ()):
        what = {name: value for name, value in entry.items() if name != "as"}
        found.setdefault(str(entry.get("as") or entry["method"].rpartition(":")[2]), []).append(what)
    return found


def controls_of(made: Mapping[str, Sequence[Any]], table: ScoresTable) -> tuple[str, ...]:
    """Return the names of the controls: the method decides; where the plan says none, the name is the method."""
    named = (name for name, entries in made.items() if all(each["method"] in table.controls for each in entries))
    return (*named, *(name for name in table.controls if name not in made))


def void_of(document: Mapping[str, Any]) -> frozenset[tuple[str, str]]:
    """Return setting and attack, as scores name it, of every line of a result that broke a nominal rate."""
    return frozenset(
        (row["setting"], ".".join(filter(None, (row.get("unlearner"), row.get("selection"), row["attack"]))))
        for row in document["table"]
        if row.get("void")
    )


def sides_of(folders: Sequence[Path], settings: Sequence[str]) -> list[Side]:
    """Return the sides of a comparison; raises BadInput for fewer than two, twice the same, and other questions."""
    if settings:
        return _settings_of(folders, settings)
    if len(folders) < 2:
        raise BadInput("give two runs or more, or one with --setting A --setting B")
    if len({folder.resolve() for folder in folders}) < len(folders):
        raise BadInput("a run is given twice; give each once")
    found = [read_side(folder) for folder in folders]
    for side in found[1:]:
        if side.kind != found[0].kind:
            raise BadInput(
                f"{found[0].folder} is of kind {found[0].kind}, {side.folder} of kind {side.kind}: they ask different "
                "questions; compare runs of one kind"
            )
    labels = [side.label for side in found]
    if len(set(labels)) < len(labels):
        found = [replace(side, label=str(side.folder)) for side in found]
    return found


def _settings_of(folders: Sequence[Path], settings: Sequence[str]) -> list[Side]:
    """Return settings of one run as sides, their own setting left blank."""
    if len(folders) != 1 or len(settings) < 2 or len(set(settings)) < len(settings):
        raise BadInput("--setting compares settings of one run: give one RUN and two settings or more, each once")
    side = read_side(folders[0])
    for name in settings:
        if name not in side.settings:
            raise BadInput(
                f"--setting {name!r}{did_you_mean(name, side.settings)}: {folders[0]} has {', '.join(side.settings)}"
            )
    return [
        replace(
            side,
            label=name,
            setting=name,
            said=tuple(
                replace(each, judged=replace(each.judged, setting="")) for each in side.said if each.setting == name
            ),
            modes={"": side.modes[name]} if name in side.modes else {},
            void=frozenset(("", attack) for setting, attack in side.void if setting == name),
        )
        for name in settings
    ]
