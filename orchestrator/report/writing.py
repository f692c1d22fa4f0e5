"""What writing a page takes, whatever was audited: figures into files, a template, the command and the settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.report.style import drawing, save

if TYPE_CHECKING:
    from jinja2 import Template
    from matplotlib.figure import Figure


def draw(makers: Mapping[str, Callable[[], Figure | None]], folder: Path) -> dict[str, str]:
    """Write every figure that its maker has something for, and return them as SVG elements by name."""
    drawn = {}
    for name, make in makers.items():
        with drawing(name):
            figure = make()
        if figure is not None:
            drawn[name] = save(figure, name, folder)
    return drawn


def template(name: str) -> Template:
    """Return a template of the report by its path below ``orchestrator/report``; it escapes what it is given."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("orchestrator.report", ".")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    return environment.get_template(name)


def command(result: Mapping[str, Any], *, sweep: bool) -> str:
    """Return the command that repeats a run from the plan beside its report."""
    verb = f"sweep {result['name']}" if sweep else f"audit {result['kind']}"
    return f"orch {verb} plan.yaml --out again"


def changes(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what each setting changes; nothing for a run of one setting."""
    entries = result["settings"]
    if len(entries) < 2:
        return []
    return [
        (entry["setting"], ", ".join(f"{path} = {value}" for path, value in entry["overrides"].items()) or "the plan")
        for entry in entries
    ]
