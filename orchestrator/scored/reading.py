"""Read files of scores in any layout."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from audits.errors import BadInput, did_you_mean, how_many
from orchestrator.scored import files
from orchestrator.scored.attacks import Attack, attacks_of, joined
from orchestrator.scored.columns import Part
from orchestrator.scored.layouts import leakpro, own, plain, privacy_meter, sacro
from orchestrator.scored.options import AUTO, Options
from orchestrator.scored.tabular import Tabular, of_arrays, of_json, of_table

PLAIN, OWN = "plain", "orch"
LAYOUTS = {
    PLAIN: "columns named by options",
    OWN: "scores.parquet of our own runs",
    "leakpro": "LeakPro: data_objects/*.json",
    "privacy-meter": "ML Privacy Meter: attack_result_*.npz",
    "sacro-ml": "SACRO-ML: report.json with its .npz files, or one of these",
}
Parts = tuple[str, Sequence[Part | Attack], list[str]]
"""How a file was read, its attacks, and what a reader must know."""


@dataclass(frozen=True)
class Scores:
    """What the attacks of some files said; ``layout``: how they were read; ``notes``: what a reader must know."""

    attacks: tuple[Attack, ...]
    layout: str
    sources: tuple[dict[str, Any], ...]
    notes: tuple[str, ...]


def read_scores(paths: Sequence[Path], options: Options) -> Scores:
    """Return the scores of ``paths``; raises BadInput for what is no table of scores, or no layout of that name."""
    options.check()
    if options.layout not in (AUTO, *LAYOUTS):
        near = did_you_mean(options.layout, LAYOUTS)
        raise BadInput(f"--layout {options.layout!r}{near}; allowed: {AUTO}, {', '.join(LAYOUTS)}")
    if len({path.resolve() for path in paths}) < len(paths):
        raise BadInput("a file of scores is given twice; give each once")
    sources = tuple(source(path) for path in paths if files.ending(path))
    refuse_copies(sources)
    read = [_read(path, options) for path in paths]
    layouts = list(dict.fromkeys(layout for layout, _, _ in read))
    if len(layouts) > 1:
        raise BadInput(f"files of several layouts ({', '.join(layouts)}) are not judged together; give one at a time")
    attacks = joined([found for _, found, _ in read], labels(paths))
    notes = [note for _, _, told in read for note in told]
    left_out = sum(found[0].left_out for _, found, _ in read)
    if left_out:
        notes.append(f"{how_many(left_out, 'row')} without a number or a name left out (--drop-missing)")
    return Scores(tuple(attacks), layouts[0], sources, tuple(notes))


def refuse_copies(sources: Sequence[Mapping[str, Any]]) -> None:
    """Raise BadInput for two files of one content: they would count as two targets, with too narrow an interval."""
    first: dict[str, str] = {}
    for each in sources:
        if (same := first.setdefault(each["sha256"], each["file"])) != each["file"]:
            raise BadInput(f"{same} and {each['file']} hold the same bytes: they are no two targets; give one of them")


def labels(paths: Sequence[Path]) -> list[str]:
    """Return short names of files that tell them apart."""
    stems = [path.stem for path in paths]
    return stems if len(set(stems)) == len(stems) else [str(path) for path in paths]


def source(path: Path) -> dict[str, Any]:
    """Return a file's name, size and digest; raises BadInput for one that cannot be read."""
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {files.one_line(error)}") from None
    return {"file": str(path), "bytes": path.stat().st_size, "sha256": digest}


def _read(path: Path, options: Options) -> tuple[str, list[Attack], list[str]]:
    """Return layout, attacks and notes of one file."""
    kind = files.ending(path)
    find: Callable[[Path, Options], Parts] = {".npz": _arrays, ".json": _json, ".parquet": _parquet}.get(kind, _text)
    layout, found, notes = find(path, options)
    if layout != PLAIN and options.names_columns:
        raise BadInput(
            f"{path} is of layout {layout}, which has columns of its own; leave --member, --score, --group, --point "
            f"and --decision out, or add --layout {PLAIN}"
        )
    attacks = [
        attack
        for each in found
        for attack in (attacks_of(each, options.drop_missing) if isinstance(each, Part) else [each])
    ]
    return layout, attacks, notes


def _plain(table: Callable[[], Tabular], path: Path, options: Options) -> Parts:
    if options.layout not in (AUTO, PLAIN):
        raise BadInput(f"{path} is not of layout {options.layout} ({LAYOUTS[options.layout]})")
    return PLAIN, [plain.part_of(table(), path, options)], []


def _text(path: Path, options: Options) -> Parts:
    return _plain(lambda: of_table(files.read_text(path)), path, options)


def _parquet(path: Path, options: Options) -> Parts:
    table = files.read_parquet(path)
    kind = "" if options.names_columns or options.layout == PLAIN else own.kind_of(table)
    if not kind:
        return _plain(lambda: of_table(table), path, options)
    attacks = own.attacks(table, kind)
    if not attacks:
        raise BadInput(f"{path} is a scores table of kind {kind} without an attack that can be judged")
    return OWN, attacks, []


def _arrays(path: Path, options: Options) -> Parts:
    arrays = files.read_arrays(path)
    if _may_be("privacy-meter", options) and privacy_meter.matches(arrays):
        return "privacy-meter", privacy_meter.parts(arrays, path), privacy_meter.notes(path)
    if _may_be("sacro-ml", options) and sacro.matches_arrays(arrays):
        return "sacro-ml", sacro.array_parts(arrays, path), []
    return _plain(lambda: of_arrays(arrays, path), path, options)


def _json(path: Path, options: Options) -> Parts:
    value = files.read_json(path)
    if _may_be("leakpro", options) and leakpro.matches(value):
        return "leakpro", leakpro.parts(value, path), []
    if _may_be("sacro-ml", options) and sacro.matches(value):
        return "sacro-ml", sacro.parts(value, path), []
    return _plain(lambda: of_json(value, path), path, options)


def _may_be(layout: str, options: Options) -> bool:
    """Say whether a file may be read in a layout: it is the one asked for, or nobody asked and no column is named."""
    return options.layout == layout or (options.layout == AUTO and not options.names_columns)
