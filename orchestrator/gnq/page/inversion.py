"""Model inversion in sentences, tables and pictures; nothing for runs without it."""

from __future__ import annotations

from typing import Any

from orchestrator.gnq.page.numbers import change, change_entry, holm_p, standing
from orchestrator.gnq.page.reading import NONE, GnqRun
from orchestrator.gnq.result.judging import LIKENESS, TWIN
from orchestrator.gnq.result.paired import PairedRow
from orchestrator.gnq.result.words import arm_words
from orchestrator.report.grid import Grid, grid, left
from orchestrator.report.numbers import entry, estimate, number, percent
from orchestrator.report.result import of_setting
from orchestrator.report.sentence import Sentence

OWN, START, RANDOM = "own", "start", "random"
MODELS = {OWN: "the target’s", TWIN: "the twin’s (control)"}
SEARCHED = MODELS | {START: "none: the start (control)"}
MEASURES = {"ssim_image": "SSIM", "mse_image": "squared error"}
AGAINST = {
    TWIN: "own model minus the twin’s",
    START: "own model minus the start",
    NONE: "own model minus that without a defence",
    RANDOM: "own model minus that behind removal at random",
}
TERMS = {
    "Model inversion": (
        "The attacker holds the model and searches for the input that it assigns to a class with most confidence "
        "(MI-Face: 1 − p plus total variation), starting from the mean of images that the target never saw. The result "
        "may only resemble the class. It is therefore compared with the class mean and with the result from the twin’s "
        "model, which never saw the image. The start is the mean image before the search; removal at random shows what "
        "training without some points does by itself."
    ),
    "SSIM, squared error": "Likeness of two images: SSIM is 1 for equal ones, the mean squared error 0.",
}
"""Terms of the glossary."""


def inversion_grid(run: GnqRun, setting: str) -> Grid | None:
    """Return arm × model: how like reconstructions are to the images and to their class means; None without any."""
    names = {arm.arm: arm_words(arm) for arm in run.arms(setting)}
    body = [
        [
            names[row.arm],
            SEARCHED[row.model],
            row.images,
            *map(entry, (row.ssim_image, row.ssim_class_mean, row.mse_image, row.mse_class_mean)),
            number(row.confidence),
        ]
        for row in of_setting(run.result.inversions, setting)
    ]
    level = percent(run.level, 0)
    columns = [left("arm"), left("model searched"), "images", f"SSIM to the image [{level}]", "SSIM to its class mean"]
    columns += ["squared error to the image", "squared error to its class mean", "confidence"]
    return grid(f"inversion-{setting}", f"{setting}: what model inversion finds", columns, body) if body else None


def inversion_gain_grid(run: GnqRun, setting: str) -> Grid | None:
    """Return paired differences in likeness to the image, one of ``AGAINST`` after the other; None without any."""
    names = {arm.arm: arm_words(arm) for arm in run.arms(setting)}
    body = [
        [
            names[row.arm],
            AGAINST[row.against],
            MEASURES[row.measure],
            change_entry(row, run.level),
            holm_p(row),
        ]
        for against in AGAINST
        for row in of_setting(run.result.inversion_gains, setting)
        if row.against == against
    ]
    columns = [left("arm"), left("difference"), left("measure"), f"to the image [{percent(run.level, 0)}]", "p (Holm)"]
    title = f"{setting}: model inversion, paired by pool; * after Holm’s correction"
    return grid(f"inversion-gains-{setting}", title, columns, body) if body else None


def inversion_verdict(run: GnqRun, setting: str) -> list[Sentence]:
    """Say whether models show the images that they trained on better than models that never saw them, and removal."""
    rows = {(row.arm, row.model): row for row in of_setting(run.result.inversions, setting)}
    gains = [row for row in of_setting(run.result.inversion_gains, setting) if row.measure == LIKENESS]
    against = {(row.arm, row.against): row for row in gains}
    if (NONE, TWIN) not in against:
        return []
    gain = against[NONE, TWIN]
    parts = [
        f"From the undefended model, SSIM to the {rows[NONE, OWN].images} most exposed images is "
        f"{estimate(rows[NONE, OWN].ssim_image)}; from the twin’s model, which never saw them, "
        f"{estimate(rows[NONE, TWIN].ssim_image)}. Difference {change(gain)}: {_nearer(gain, run.level)}."
    ]
    if gain.clear(run.level) <= 0 and gain.difference.low is not None:
        parts.append("This may show no more than what the class looks like.")
    for arm in run.arms(setting):
        if row := against.get((arm.arm, NONE)):
            found = standing(row, run.level, "less like them", "more like them", "no difference is shown")
            beside = against.get((arm.arm, RANDOM))
            also = f" Against removal at random {change(beside)}." if beside else ""
            parts.append(f"With {arm_words(arm)} {change(row)} against no defence: {found}.{also}")
    return [Sentence("leak" if gain.clear(run.level) > 0 else "plain", "Model inversion", " ".join(parts))]


def _nearer(row: PairedRow, level: float) -> str:
    """Return whether the own model's reconstructions are nearer to the images than the twin's."""
    return standing(row, level, "further from the images", "closer to the images", "no closer, a null result")


def inversion_pictures(run: GnqRun, setting: str) -> list[dict[str, Any]]:
    """Return one entry a pool: its point, and (caption, picture or None) side by side; two of each arm."""
    names = {arm.arm: arm_words(arm) for arm in run.arms(setting)}
    found = []
    for row in of_setting(run.result.inversion_pictures, setting):
        pairs = [(names[arm.arm], {OWN: arm.own, TWIN: arm.twin}) for arm in row.arms]
        made = [(f"{name}: {MODELS[model]}", pair[model]) for name, pair in pairs for model in MODELS]
        shown = [("the image", row.image), ("its class mean", row.class_mean), *made]
        found.append({"title": f"Pool {row.pool}, point {row.point_id}, class {row.label}", "shown": shown})
    return found
