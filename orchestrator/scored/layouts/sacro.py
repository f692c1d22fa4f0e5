"""SACRO-ML: ``report.json`` and the .npz files that it points to, or one of these files.

``report.json`` holds one object an attack, ``NAME_LOG-ID``, with ``metadata.attack_name`` and, below
``attack_experiment_logger.attack_instance_logger``, ``instance_N`` for each repetition. Scores are there if the attack
ran with ``report_individual``: ``individual.member_prob`` (large = member) and ``individual.member`` (1: member), in
the .npz named ``arrays_file`` (keys ``individual.member_prob`` …), or within the JSON in reports before these files.
The repetitions of an attack are new splits of one target's points, no new targets, so that each is an attack of its own
here; attacks of one name in one report are called by their keys. Source: ``write_json`` and ``_externalise_arrays`` in
``sacroml/attacks/report.py``, ``likelihood_attack.py``, ``qmia_attack.py`` and ``worst_case_attack.py`` of
github.com/AI-SDC/SACRO-ML, August 2026.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from audits.errors import BadInput
from orchestrator.scored.columns import Part
from orchestrator.scored.files import Arrays, read_arrays
from orchestrator.scored.tabular import column_of_array, column_of_list, table_of

LOGGER, INSTANCES, POINTER = "attack_experiment_logger", "attack_instance_logger", "arrays_file"
PROBABILITY, MEMBER, INDIVIDUAL = "member_prob", "member", "individual"


def matches(value: Any) -> bool:
    """Say whether a JSON value is a report of SACRO-ML."""
    return (
        isinstance(value, Mapping)
        and bool(value)
        and all(isinstance(each, Mapping) and LOGGER in each for each in value.values())
    )


def matches_arrays(arrays: Arrays) -> bool:
    """Say whether arrays are the companion of such a report."""
    return all(f"{INDIVIDUAL}.{name}" in arrays for name in (PROBABILITY, MEMBER))


def parts(value: Mapping[str, Any], path: Path) -> list[Part]:
    """Return the attacks of a report, those without scores left out."""
    found = list(_parts(value, path))
    if not found:
        raise BadInput(
            f"{path} has no scores of single points: run the attacks with report_individual=True, and keep the .npz "
            "files beside the report"
        )
    return found


def _parts(value: Mapping[str, Any], path: Path) -> Iterator[Part]:
    called = {key: str(attack.get("metadata", {}).get("attack_name") or key) for key, attack in value.items()}
    for key, attack in value.items():
        name = called[key] if list(called.values()).count(called[key]) == 1 else key
        instances = attack[LOGGER].get(INSTANCES, {})
        for place, (instance, told) in enumerate(instances.items()):
            whole = name if len(instances) == 1 else f"{name} {place}"
            if INDIVIDUAL in told:
                yield part_of(told[INDIVIDUAL], whole, path)
            elif POINTER in told:
                yield from array_parts(read_arrays(beside(path, str(told[POINTER]))), path, whole, f"{key}.{instance}")


def beside(path: Path, name: str) -> Path:
    """Return a file of the report's own folder; raises BadInput for one elsewhere or missing."""
    found = path.parent / name
    if Path(name).name != name or not found.is_file():
        raise BadInput(f"{path} points to {name!r}, which is not beside it; keep report and .npz files together")
    return found


def array_parts(arrays: Arrays, path: Path, name: str = "", where: str = "") -> list[Part]:
    """Return the attack of one .npz file; nothing for one without scores of single points."""
    if not matches_arrays(arrays):
        return []
    told = {name: arrays[f"{INDIVIDUAL}.{name}"] for name in (PROBABILITY, MEMBER)}
    return [part_of(told, name or path.stem, path, where)]


def part_of(told: Mapping[str, Any], name: str, path: Path, where: str = "") -> Part:
    """Return the attack of one instance."""
    lacking = [key for key in (PROBABILITY, MEMBER) if key not in told]
    if lacking or len(told[PROBABILITY]) != len(told[MEMBER]):
        raise BadInput(f"{path}: {where or name} needs one {PROBABILITY} and one {MEMBER} for each point")
    columns = {
        key: (column_of_array if isinstance(told[key], np.ndarray) else column_of_list)(told[key], key, path)
        for key in (PROBABILITY, MEMBER)
    }
    return Part(table_of(columns, path), str(path), MEMBER, {name: PROBABILITY})
