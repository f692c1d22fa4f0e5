"""What model inversion found, in words, tables and pictures; nothing for runs without it."""

from __future__ import annotations

from typing import Any

from orchestrator.report.by_setting import Grid
from orchestrator.report.disclosure.glossary import arm_words
from orchestrator.report.disclosure.numbers import change, estimate, holm_mark, number, p_words, standing
from orchestrator.report.disclosure.reading import NONE, DisclosureRun, clear
from orchestrator.report.reading import Row, percent
from orchestrator.report.verdict import Sentence

OWN, TWIN, START, RANDOM = "own", "twin", "start", "random"
MODELS = {OWN: "the target’s", TWIN: "the twin’s (control)"}
SEARCHED = MODELS | {START: "none: the start (control)"}
MEASURES = {"ssim_image": "SSIM", "mse_image": "squared error"}
AGAINST = {
    TWIN: "own model minus the twin’s",
    START: "own model minus the start",
    NONE: "own model minus that without a defence",
    RANDOM: "own model minus that behind removal at random",
}
JUDGE = "ssim_image"
"""The measure by which the verdict speaks, fixed by name."""
TERMS = {
    "Model inversion": (
        "The attacker holds the model and looks for the input that it takes for a class with most confidence (MI-Face: "
        "1 − p plus total variation), from the mean of images that the target never saw. What is found may only "
        "resemble the class. So it is set beside the class mean, and beside what the twin’s model gives, which never "
        "saw the image. The start is the mean image before any search; removal at random shows what training without "
        "some point does by itself."
    ),
    "SSIM, squared error": "Likeness of two images: SSIM is 1 for equal ones, the mean squared error 0.",
}
"""What the glossary says of it."""


def held(run: DisclosureRun, field: str, setting: str) -> list[Row]:
    """Return the rows of a list that results without inversion, and older ones, do not have."""
    return [row for row in run.result.get(field) or [] if row["setting"] == setting]


def inversion_grid(run: DisclosureRun, setting: str) -> Grid | None:
    """Return arm × model: how like reconstructions are to the images and to their class means; None without any."""
    names = {arm["arm"]: arm_words(arm) for arm in run.arms(setting)}
    columns = ("ssim_image", "ssim_class_mean", "mse_image", "mse_class_mean")
    body = [
        [
            names[row["arm"]],
            SEARCHED[row["model"]],
            str(row["images"]),
            *(estimate(row, name) for name in columns),
            number(row["confidence"]),
        ]
        for row in held(run, "inversions", setting)
    ]
    level = percent(run.level, 0)
    head = ["arm", "model searched", "images", f"SSIM to the image [{level}]", "SSIM to its class mean"]
    head += ["squared error to the image", "squared error to its class mean", "confidence"]
    return Grid(f"{setting}: what model inversion finds", head, body) if body else None


def inversion_gain_grid(run: DisclosureRun, setting: str) -> Grid | None:
    """Return paired differences in likeness to the image, one of ``AGAINST`` after the other; None without any."""
    names = {arm["arm"]: arm_words(arm) for arm in run.arms(setting)}
    body = [
        [
            names[row["arm"]],
            AGAINST[row["against"]],
            MEASURES[row["measure"]],
            f"{change(row)}{holm_mark(row, run.level)}",
            p_words(row),
        ]
        for against in AGAINST
        for row in held(run, "inversion_gains", setting)
        if row["against"] == against
    ]
    head = ["arm", "difference", "measure", f"to the image [{percent(run.level, 0)}]", "p (Holm)"]
    title = f"{setting}: model inversion, paired by pool; * after Holm’s correction"
    return Grid(title, head, body) if body else None


def inversion_verdict(run: DisclosureRun, setting: str) -> list[Sentence]:
    """Say whether models show the images that they trained on better than models that never saw them, and removal."""
    rows = {(row["arm"], row["model"]): row for row in held(run, "inversions", setting)}
    gains = [row for row in held(run, "inversion_gains", setting) if row["measure"] == JUDGE]
    against = {(row["arm"], row["against"]): row for row in gains}
    if (NONE, TWIN) not in against:
        return []
    gain = against[NONE, TWIN]
    parts = [
        f"From the undefended model, SSIM to the {rows[NONE, OWN]['images']} most exposed images is "
        f"{estimate(rows[NONE, OWN], JUDGE)}; from the twin’s model, which never saw them, "
        f"{estimate(rows[NONE, TWIN], JUDGE)}. Difference {change(gain)}: {_nearer(gain, run.level)}."
    ]
    if clear(gain, run.level) <= 0 and gain["low"] is not None:
        parts.append("What is found is not shown to be more than the class.")
    for arm in run.arms(setting):
        if row := against.get((arm["arm"], NONE)):
            found = standing(row, run.level, "less like them", "more like them", "not told from it, a null result")
            beside = against.get((arm["arm"], RANDOM))
            also = f" Against removal at random {change(beside)}." if beside else ""
            parts.append(f"With {arm_words(arm)} {change(row)} against no defence: {found}.{also}")
    return [Sentence("leak" if clear(gain, run.level) > 0 else "plain", "Model inversion", " ".join(parts))]


def _nearer(row: Row, level: float) -> str:
    """Return whether the own model's reconstructions are nearer to the images than the twin's."""
    return standing(row, level, "further from the images", "closer to the images", "not closer, a null result")


def inversion_pictures(run: DisclosureRun, setting: str) -> list[dict[str, Any]]:
    """Return one entry a pool: its point, and (caption, picture or None) side by side; two of each arm."""
    names = {arm["arm"]: arm_words(arm) for arm in run.arms(setting)}
    return [
        {
            "title": f"Pool {row['pool']}, point {row['point_id']}, class {row['label']}",
            "shown": [
                ("the image", row["image"]),
                ("its class mean", row["class_mean"]),
                *(
                    (f"{names[arm['arm']]}: {MODELS[model]}", arm[model])
                    for arm in row["arms"]
                    for model in MODELS
                ),
            ],
        }
        for row in held(run, "inversion_pictures", setting)
    ]  # fmt: skip
