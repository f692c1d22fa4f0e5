"""Finished runs: the head of result.json that all kinds share, and the reader of the whole."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

from numpy.typing import NDArray

from audits.data.bounded import json_within, table_within
from audits.errors import BadInput
from orchestrator.engine.kind import Finished
from orchestrator.engine.run.fingerprints import Fingerprints
from orchestrator.engine.run.result_head import SCHEMA, head
from orchestrator.judgement.gate_result import GateResult
from orchestrator.judgement.rows import Verdict
from orchestrator.report.rows import SPARSE, read_row, write_row
from orchestrator.report.selection import SelectionRow
from orchestrator.report.trials import different


@dataclass(frozen=True, kw_only=True)
class SettingRow:
    """One setting of a run: its name and the plan fields that it changes."""

    setting: str
    overrides: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class FinishedRun:
    """The content of result.json; each kind adds its tables of rows. The engine adds what is None before.

    ``main``: the setting of tables, verdict and controls where a choice names it. A search names none: the best of its
    trials is picked on the targets, so that no verdict may be about it.
    """

    KIND: ClassVar[str]

    schema: str = SCHEMA
    name: str
    kind: str
    seed: int
    settings: tuple[SettingRow, ...]
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    population: Mapping[str, int] = field(default_factory=dict)
    served: Mapping[str, Any] | None = field(default=None, metadata=SPARSE)
    plan: Mapping[str, Any]
    plan_hash: str = ""
    fingerprints: Fingerprints | None = field(default=None, metadata=SPARSE)
    versions: Mapping[str, str]
    makes: str | None = field(default=None, metadata=SPARSE)
    file: str | None = field(default=None, metadata=SPARSE)
    selection: SelectionRow | None = field(default=None, metadata=SPARSE)
    search: Mapping[str, Any] | None = field(default=None, metadata=SPARSE)
    main: str | None = field(default=None, metadata=SPARSE)
    verdict: Verdict | None = field(default=None, metadata=SPARSE)
    pictures: bool | None = field(default=None, metadata=SPARSE)
    aggregate_only: bool | None = field(default=None, metadata=SPARSE)
    gate: GateResult | None = field(default=None, metadata=SPARSE)
    seconds: float | None = field(default=None, metadata=SPARSE)
    date: str | None = field(default=None, metadata=SPARSE)
    tracking: Mapping[str, Any] | None = field(default=None, metadata=SPARSE)

    @cached_property
    def main_setting(self) -> str:
        """The setting of whatever names none: tables, verdict, controls; see ``main_setting``."""
        return self.main or self.own_setting or self.settings[0].setting

    @cached_property
    def own_setting(self) -> str:
        """The setting that is the plan's own, "" where the run has none; see ``own_setting``."""
        return own_setting(self.plan, self.bare_settings)

    @cached_property
    def bare_settings(self) -> list[SettingRow]:
        """The settings with the changes by which they are compared with the plan."""
        return list(self.settings)

    @property
    def is_plan(self) -> bool:
        """Whether the main setting is the plan as it is, at whatever seed."""
        own = next((each.overrides for each in self.bare_settings if each.setting == self.main_setting), {})
        return all(look_up(self.plan, path) == value for path, value in own.items() if path != "seed")

    @property
    def has_several(self) -> bool:
        """Whether there are settings beside the main one, also those of a choice and trials that a search stopped."""
        tried = 1 if self.search is None else len(different(self.search))
        return len(self.settings) > 1 or self.selection is not None or tried > 1

    @property
    def about(self) -> str:
        """The main setting and why it is that one, for the head of a verdict; "" for a run of one setting."""
        if not self.has_several:
            return ""
        what = "settings" if self.search is None else "whole trials"
        why = f"the first of {len(self.settings)} {what}, as the plan’s own is none of them"
        if self.is_plan:
            chosen = self.selection is not None and self.selection.winner == self.main_setting
            why = f"the plan’s own setting{', chosen' if chosen else ''}"
        elif self.selection is not None and self.main_setting == self.selection.winner:
            why = "the chosen setting"
        elif self.main_setting == self.own_setting:
            why = "the plan’s own but for what all settings change"
        return f"{self.main_setting} ({why})"

    def headed(self, title: str) -> str:
        """Return the title of a table about the main setting, which it names where the run has several."""
        if not self.has_several:
            return title
        shown = title[:1].lower() + title[1:] if title[1:2].islower() else title
        return f"{self.main_setting}: {shown}"

    @property
    def is_sweep(self) -> bool:
        """Whether the settings are a sweep's, not those that the plan names."""
        return self.name != f"{self.kind}-audit"

    def value(self, setting: str, path: str) -> Any:
        """Return the value at a dotted path of a setting's plan, or None."""
        changes = next(entry.overrides for entry in self.settings if entry.setting == setting)
        return changes[path] if path in changes else look_up(self.plan, path)

    def again(self) -> str:
        """Return the command that repeats the run from the plan beside its report, as a shell takes it.

        A result may be somebody else's: no name in it is more than one word to the shell, or an option.
        """
        if chosen := self.selection:
            words = ["tune", operand(self.kind), operand(chosen.file or chosen.sweep), "plan.yaml"]
            words += ["--metric", chosen.metric, *([] if chosen.mode == "max" else ["--mode", chosen.mode])]
        elif self.is_sweep:
            words = ["sweep", operand(self.file or self.name), "plan.yaml"]
        else:
            words = ["audit", operand(str(look_up(self.plan, "audit.kind") or self.kind)), "plan.yaml"]
        words += ["--out", "again", *(["--aggregate-only"] if self.aggregate_only else [])]
        return f"orch {shlex.join(words)}"

    def document(self) -> dict[str, Any]:
        """Return the content of result.json as plain values."""
        return write_row(self)


def operand(word: str) -> str:
    """Return a word of a command that is no option, whatever it begins with."""
    return f"./{word}" if word.startswith("-") else word


def head_of(finished: Finished) -> dict[str, Any]:
    """Return the head of a finished run as fields of a ``FinishedRun``, without settings, warnings and notes."""
    found = {name: value for name, value in head(finished).items() if name not in ("settings", "warnings", "notes")}
    if "selection" in found:
        found["selection"] = read_row(SelectionRow, found["selection"], "selection")
    return found


HEAD: Mapping[str, type] = {"kind": str, "seed": int, "plan": dict, "settings": list, "table": list}
"""Fields without which a result is none."""
WORDS: Mapping[type, str] = {str: "a text", int: "a whole number", dict: "an object", list: "a list"}

F = TypeVar("F", bound=FinishedRun)


class OfSetting(Protocol):
    """A row that belongs to a setting."""

    @property
    def setting(self) -> str:
        """The name of the setting."""
        ...


S = TypeVar("S", bound=OfSetting)


def of_setting(rows: Iterable[S], setting: str) -> list[S]:
    """Return the rows that belong to a setting."""
    return [row for row in rows if row.setting == setting]


def look_up(plan: Mapping[str, Any], path: str) -> Any:
    """Return the value at a dotted path of the resolved plan, or None."""
    value: Any = plan
    for part in path.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return None
        value = value[part]
    return value


def main_setting(plan: Mapping[str, Any], settings: Sequence[SettingRow]) -> str:
    """Return the setting that is the plan's own (``own_setting``), else the first."""
    return own_setting(plan, settings) or settings[0].setting


def own_setting(plan: Mapping[str, Any], settings: Sequence[SettingRow]) -> str:
    """Return the setting that is ``plan`` (resolved) itself, but for what all settings change alike; "" for none."""
    first = settings[0].overrides
    shared = [path for path, value in first.items() if all(each.overrides.get(path) == value for each in settings)]
    for entry in settings:
        own = {path: value for path, value in entry.overrides.items() if path not in shared}
        if all(look_up(plan, path) == value for path, value in own.items()):
            return entry.setting
    return ""


def main_setting_of(document: Mapping[str, Any]) -> str:
    """Return the setting of result.json that a reader wants first; see ``FinishedRun.main_setting``."""
    if found := document.get("main"):
        return str(found)
    rows = [SettingRow(setting=entry["setting"], overrides=entry["overrides"]) for entry in document["settings"]]
    return main_setting(document["plan"], rows)


def read_result(out: Path) -> dict[str, Any]:
    """Return result.json of the finished run in the folder ``out``.

    Raises BadInput for what is no folder, and where a file is missing or of another schema. A run of aggregates
    only keeps no scores.
    """
    if out.is_file():
        raise BadInput(f"{out} is a file; give the folder of the run, {out.parent}")
    if not (out / "result.json").is_file():
        raise BadInput(f"{out} is not a finished run: result.json is missing")
    file = out / "result.json"
    result: dict[str, Any] = json_within(file, str(file))
    if not isinstance(result, dict):
        raise BadInput(f"{file} is no result: it holds no JSON object")
    if not (out / "scores.parquet").is_file() and not result.get("aggregate_only"):
        raise BadInput(f"{out} is not a finished run: scores.parquet is missing")
    if result.get("schema") != SCHEMA:
        raise BadInput(
            f"{file} has schema {result.get('schema')!r}, this version reads {SCHEMA!r}: make the result again (the "
            "command is at the end of its page), or read it with the version that wrote it"
        )
    for name, form in HEAD.items():
        if not isinstance(result.get(name), form):
            raise BadInput(f"{file} is damaged: {name} is {str(result.get(name))[:40]!r}, not {WORDS[form]}")
    settings = result["settings"]
    if not settings or not all(isinstance(each, dict) and {"setting", "overrides"} <= set(each) for each in settings):
        raise BadInput(f"{file} is damaged: settings is no list of settings with overrides")
    if not result["table"]:
        raise BadInput(f"{file} has an empty table: nothing to report")
    return result


def read_scores(out: Path, columns: Sequence[str] | None = None, attack: str | None = None) -> dict[str, NDArray[Any]]:
    """Return the columns of scores.parquet in ``out``, none where a run of aggregates only kept no scores.

    ``attack``: the one whose rows are meant; raises BadInput for a file that cannot be read.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    file = out / "scores.parquet"
    if not file.is_file():
        return {}
    try:
        if attack is None:
            table = table_within(file, str(file), columns)
        else:
            table = table_within(file, str(file), None if columns is None else ["attack", *columns])
            table = table.filter(pc.equal(table["attack"], attack)).select(columns or table.column_names)
    except (pa.ArrowException, OSError, KeyError) as error:
        raise BadInput(f"{file} cannot be read as the scores of this run: {error}") from None
    return {name: table.column(name).to_numpy(zero_copy_only=False) for name in table.column_names}


def read_run(out: Path, form: type[F]) -> F:
    """Return the finished run in ``out``; raise BadInput when it is unfinished, of another kind, or does not fit."""
    return run_of(read_result(out), form, str(out / "result.json"))


def run_of(document: Mapping[str, Any], form: type[F], where: str = "result.json") -> F:
    """Return the content of result.json as a run; ``where``: its place, for messages.

    Fields of the head that are not known are ignored: later versions add some. Rows must fit.
    """
    if document.get("kind") != form.KIND:
        raise BadInput(f"{where} is of kind {document.get('kind')!r}; this report reads kind {form.KIND!r}")
    return read_row(form, document, where, additions=True)
