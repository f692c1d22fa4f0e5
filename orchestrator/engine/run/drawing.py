"""The place where the page of a run is drawn: its own folder, or a private one where no score may be left there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from audits.writing import make_folder, opened_folder, write_whole
from orchestrator.engine.run.output_folder import (
    ARTIFACTS,
    FIGURES,
    REPORT_FILE,
    write_document,
    write_outputs,
    write_plan,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from orchestrator.engine.plan.base import BasePlan

SCORES_FILE = "scores.parquet"


class Drawing:
    """``folder`` holds all that a page is drawn from: ``out`` itself, or a temporary folder that others cannot read.

    With ``private`` no score is written into ``out``, and those of an earlier run there are deleted with its figures.
    """

    def __init__(self, out: Path, *, private: bool) -> None:
        self.out = self.folder = out
        self.temporary: TemporaryDirectory[str] | None = None
        if private:
            self.temporary = TemporaryDirectory(prefix="orch-")
            self.folder = Path(self.temporary.name)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.temporary is not None:
            self.temporary.cleanup()

    def write(self, document: Mapping[str, Any], scores: pa.Table, plan: BasePlan) -> None:
        """Write scores.parquet, plan.yaml and result.json into ``folder``, the latter two into ``out`` as well."""
        write_outputs(self.folder, document, scores, plan)
        if self.temporary is not None:
            forget(self.out)
            write_plan(self.out, plan)
            write_document(self.out, document)

    def publish(self) -> None:
        """Copy page and figures into ``out`` where they were drawn elsewhere."""
        if self.temporary is None or not (self.folder / REPORT_FILE).is_file():
            return
        if (self.folder / FIGURES).is_dir():
            make_folder(self.out / FIGURES, below=self.out, private=True)
            for file in (self.folder / FIGURES).iterdir():
                write_whole(self.out / FIGURES / file.name, file.read_bytes(), below=self.out, private=True)
        write_whole(self.out / REPORT_FILE, (self.folder / REPORT_FILE).read_bytes(), private=True)


def forget(out: Path) -> None:
    """Delete what an earlier run left in ``out`` about single points: its scores, and its page and figures."""
    for name in (SCORES_FILE, REPORT_FILE):
        (out / name).unlink(missing_ok=True)
    if not os.path.lexists(out / FIGURES):
        return
    with opened_folder(out / FIGURES, below=out) as folder:
        for name in os.listdir(folder):
            if Path(name).suffix in (".svg", ".png", ".csv"):
                os.unlink(name, dir_fd=folder)


def kept_elsewhere(out: Path) -> list[str]:
    """Return a warning where earlier runs that were tracked below ``out`` keep scores there."""
    if any((out / ARTIFACTS).rglob(SCORES_FILE)):
        return [
            f"{out / ARTIFACTS} keeps the scores of an earlier run, which this run leaves alone; delete that folder, "
            "or choose another --out, before you hand the folder on"
        ]
    return []
