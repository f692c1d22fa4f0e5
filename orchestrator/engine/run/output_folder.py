"""The folder of a run: writable before any work begins, and never mixed with the run of another plan."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from audits.data.regular import content_of
from audits.errors import BadInput
from audits.own.permission import Named, asking
from audits.plain_json import from_json
from audits.writing import CannotWrite, make_folder, opened_to_append, require_no_link, require_own, write_whole
from orchestrator.engine.given_files import with_digests
from orchestrator.engine.jobs.keys import differences
from orchestrator.engine.own_code import code_of
from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.plan.files import read_plan_file
from orchestrator.engine.plan.sweep_files import read_sweep_file, same_sweep
from orchestrator.engine.store.faults import FULL
from orchestrator.engine.store.payloads import pack_table

if TYPE_CHECKING:
    import pyarrow as pa

    from tune_spaces.registry import Sweep

PLAN_FILE = "plan.yaml"
SWEEP_FILE = "sweep.yaml"
RUN_FILE = "run.json"
TUNED_FILE = "tuned.yaml"
RESULT_FILE = "result.json"
REPORT_FILE = "report.html"
LOG_FILE = "orch.log"
DATABASE = "mlflow.db"
FIGURES = "figures"
ARTIFACTS = "mlartifacts"
"""Where MLflow keeps the files of runs that are tracked in a database beside the result."""
FILES_IN_USE = (LOG_FILE, DATABASE, *(f"{DATABASE}-{end}" for end in ("journal", "wal", "shm")))
FOLDERS_IN_USE = (FIGURES, ARTIFACTS)
WHAT_TO_DO = "choose another --out, or add --force to write over it"

OF_RUNS = (PLAN_FILE, RESULT_FILE, "scores.parquet", REPORT_FILE, FIGURES)
"""What every run writes over; one of a sweep more (``of_sweep``)."""

Goal = tuple[str, str]
"""What ``orch tune`` chooses by: the metric, and its better end."""
Claim = Callable[[], None]
"""Makes a folder that of a run; called before the first work, when the run cannot be refused any more without any."""


def usual_folder(name: str, say: str = "--out {}") -> Path:
    """Return the folder of a run called ``name`` for which the user has named none.

    Raises BadInput where a link leads elsewhere: whoever made the working folder may have made it. ``say``: how the
    user names a folder.
    """
    if name in ("", ".", ".."):
        raise BadInput(f"a run called {name!r} has no folder of its own; name one: {say.format('FOLDER')}")
    folder = Path("runs", name)
    if link := next((place for place in (folder.parent, folder) if place.is_symlink()), None):
        raise BadInput(
            f"{link} is a link to {os.readlink(link)}, and results would go there; if that is meant, say so: "
            f"{say.format(folder)}"
        )
    return folder


def no_claim() -> None:
    """Claim nothing: whoever began the run has made the folder its own."""


def claim_folder(out: Path, plan: BasePlan, *, force: bool = False) -> Path:
    """Make ``out`` ready for a run of ``plan``, write the resolved plan into it, and return its log file.

    Raises OSError for a full disk, ``BadInput`` when ``out`` is a file, cannot be written, or holds the result of
    another plan (unless ``force``); a run that was interrupted before its result may be followed by any other.
    """
    plan = with_digests(plan)  # as the run will write it down
    with _writing(out):
        if not force:
            refuse_other_plan(out, plan)
        make_ready(out)
        write_whole(out / PLAN_FILE, plan.to_yaml().encode())
        os.close(opened_to_append(out / LOG_FILE))
    return out / LOG_FILE


def make_ready(out: Path) -> None:
    """Make ``out``, for its owner alone, and see that it can be written; raises as ``claim_folder``.

    So it does where a file or a folder that a run, or MLflow, goes on writing is a link, or no file of its own.
    """
    with _writing(out):
        make_folder(out, private=True)
        for name in FILES_IN_USE:
            require_own(out / name)
        for name in FOLDERS_IN_USE:
            require_no_link(out / name)
        with tempfile.TemporaryFile(dir=out):
            pass


@contextmanager
def _writing(out: Path) -> Iterator[None]:
    """Raise ``BadInput`` for what can be no folder of results; a full disk is raised as it is."""
    if out.parts and out.parts[0].endswith(":"):
        raise BadInput(f"--out {out.parts[0]}//… is an address; results go into a folder of this machine")
    if out.exists() and not out.is_dir():
        raise BadInput(f"--out {out} is a file; give a folder")
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise  # nothing is wrong with the folder
        inside = error.filename if isinstance(error, CannotWrite) and error.filename != str(out) else ""
        what = f"{Path(inside).name}: {error.strerror}" if inside else error.strerror
        raise BadInput(f"--out {out} cannot be written: {what}; give another folder with --out") from None


def of_sweep(sweep: Sweep | None) -> tuple[str, ...]:
    """Return what a run of ``sweep`` writes over, or removes: of one that is a file that file, too."""
    if sweep is None:
        return OF_RUNS
    return (*OF_RUNS, RUN_FILE, TUNED_FILE, *([SWEEP_FILE] if sweep.text else ()))


def refuse_strangers(out: Path, names: Iterable[str] = OF_RUNS, mark: str = LOG_FILE, way: str = WHAT_TO_DO) -> None:
    """Raise ``BadInput`` where ``out`` holds what a run writes over, but not the ``mark`` that all of them leave.

    It is the user's then, such as the plan of this very run in the folder at hand. ``way``: what may be done about it.
    """
    if os.path.lexists(out / mark):
        return
    if found := next((name for name in names if os.path.lexists(out / name)), None):
        raise BadInput(f"--out {out} holds a {found} that no run has left there; {way}")


def refuse_other_plan(out: Path, plan: BasePlan, *, begun: bool = False) -> None:
    """Raise ``BadInput`` when ``out`` holds the run, finished or ``begun``, of a plan whose scores would be others."""
    file = out / PLAN_FILE
    if not (file.is_file() and (begun or (out / RESULT_FILE).exists())):
        return
    own, theirs = set(code_of(plan.resolved())), set[Named]()
    try:
        raw = read_plan_file(file)
        theirs = set(code_of(raw))
        with asking(own.issuperset):  # whoever made the folder may have named code that nobody has allowed
            former = plan.like(raw)
    except BadInput as error:
        if other := sorted(name for name, _ in theirs - own):
            raise BadInput(f"--out {out} holds the run of another plan ({other[0]} there); {WHAT_TO_DO}") from None
        raise BadInput(f"--out {out} holds a run whose {PLAN_FILE} cannot be read ({error}); {WHAT_TO_DO}") from None
    if former.plan_hash != plan.plan_hash:
        field, old, new = differences(former.deciding(), plan.deciding())[0]
        raise BadInput(f"--out {out} holds the run of another plan ({field}: {old} there, {new} here); {WHAT_TO_DO}")


def refuse_other_command(out: Path, name: str) -> None:
    """Raise ``BadInput`` when ``out`` holds the finished run of another name: that of an audit or of another sweep."""
    former = _read(out / RESULT_FILE).get("name")
    if former is not None and former != name:
        raise BadInput(f"--out {out} holds the result of {former}, and this run is {name}; {WHAT_TO_DO}")


def refuse_other_sweep(out: Path, sweep: Sweep) -> None:
    """Raise ``BadInput`` when ``out`` holds the finished run of another sweep file, or one of more draws."""
    file = out / SWEEP_FILE
    if not (file.is_file() and (out / RESULT_FILE).exists()):
        return
    former = read_sweep_file(file, sweep.name)
    if not same_sweep(sweep, former):
        raise BadInput(f"--out {out} holds the run of another sweep ({SWEEP_FILE} there); {WHAT_TO_DO}")
    if sweep.search is None or sweep.search.adaptive or sweep.search.samples is None:
        return
    samples, before = sweep.search.samples, settings_left(out) & former.settings({}).keys()
    if lost := before - sweep.settings({}).keys():
        raise BadInput(
            f"--out {out} holds a result of {len(before)} settings, of which samples: {samples} would leave out "
            f"{len(lost)}; give as many samples as it has, or more, {WHAT_TO_DO}"
        )


def settings_left(out: Path) -> set[str]:
    """Return the names of the settings of the finished run in ``out``; of a choice, of those that it was among."""
    result = _read(out / RESULT_FILE)
    rows = (result.get("selection") or result).get("settings", [])
    return {str(row["setting"]) for row in rows}


def refuse_other_goal(out: Path, goal: Goal | None) -> None:
    """Raise ``BadInput`` when ``out`` holds a choice by another goal, or when one would replace what is no choice."""
    former = goal_left(out)
    if former == goal:
        return
    if former is not None:
        raise BadInput(f"--out {out} holds a choice of orch tune by {', '.join(former)}; {WHAT_TO_DO}")
    if (out / RESULT_FILE).exists():
        raise BadInput(f"--out {out} holds the run of another command than orch tune; {WHAT_TO_DO}")


def goal_left(out: Path) -> Goal | None:
    """Return by what the run in ``out``, interrupted or not, chooses; None where it does not."""
    record = _read(out / RUN_FILE) or _read(out / RESULT_FILE).get("selection") or {}
    return (record["metric"], record["mode"]) if record.get("metric") else None


def name_left(out: Path) -> str:
    """Return the name of the sweep in ``out``; that of the folder where an earlier version has run it."""
    return str(_read(out / RUN_FILE).get("name") or out.resolve().name)


def keep_run(out: Path, name: str, goal: Goal | None) -> None:
    """Leave the name of a run in ``out``, and by what it chooses; the plan that another choice froze goes."""
    if goal is None or goal != goal_left(out):
        (out / TUNED_FILE).unlink(missing_ok=True)
    metric, mode = goal or (None, None)
    write_whole(out / RUN_FILE, json.dumps({"name": name, "metric": metric, "mode": mode}, indent=1).encode())


def _read(file: Path) -> dict[str, Any]:
    """Return the object in a file; {} where there is none."""
    try:
        found = from_json(content_of(file))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def keep_sweep(out: Path, sweep: Sweep | None) -> None:
    """Leave the text of ``sweep`` in ``out``, if it is that of a file or of a command line, and of no earlier run.

    A file of that name that no run has left there is the user's, and stays.
    """
    if sweep is not None and sweep.text:
        write_whole(out / SWEEP_FILE, sweep.text.encode())
    elif (out / RUN_FILE).is_file():
        (out / SWEEP_FILE).unlink(missing_ok=True)


def write_outputs(out: Path, document: Mapping[str, Any], scores: pa.Table, plan: BasePlan) -> None:
    """Write scores.parquet, plan.yaml and result.json, each whole or not at all."""
    write_whole(out / "scores.parquet", pack_table(scores), private=True)
    write_plan(out, plan)
    write_document(out, document)


def write_plan(out: Path, plan: BasePlan) -> None:
    """Write plan.yaml, whole or not at all."""
    write_whole(out / PLAN_FILE, plan.to_yaml().encode())


def write_document(out: Path, document: Mapping[str, Any]) -> None:
    """Write result.json, whole or not at all."""
    write_whole(out / RESULT_FILE, json.dumps(document, indent=1).encode(), private=True)


def place_of(file: Path) -> Path:
    """Return where to write a file that the user names: a link is replaced, but for those of the system.

    Who made the folder in which it lies may have made the link.
    """
    return file.resolve() if file.absolute().parent in (Path("/dev"), Path("/dev/fd")) else file
