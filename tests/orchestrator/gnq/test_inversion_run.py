"""Model inversion within a GNQ audit, end to end on a small folder of faces: what is sought, from where, and how
like it what is found is said to be."""

from __future__ import annotations

import base64
import io
import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from audits.errors import BadInput
from audits.gnq import inversion
from audits.gnq.inversion import InversionSettings
from audits.statistics.intervals import ibragimov_mueller_t
from audits.training.fit import fit
from audits.uniqueness.rankings import RANKINGS
from orchestrator.engine.jobs.job import Job, keys_by_stage, of_stage
from orchestrator.engine.run.run import Result
from orchestrator.engine.run.worker import WorkerContext
from orchestrator.engine.store.payloads import unpack_arrays
from orchestrator.engine.store.store import Store
from orchestrator.gnq.jobs import GnqJobs
from orchestrator.gnq.kind import KIND
from orchestrator.gnq.plan import GnqPlan, Inversion
from orchestrator.gnq.result.inversions import JUDGED, inversion_gains, inversion_warnings, inversions
from orchestrator.gnq.stages import defending
from orchestrator.gnq.stages.context import Context
from orchestrator.gnq.stages.finished import seed_of
from orchestrator.gnq.stages.inverting import IMAGES, LIKENESS, MEASURES
from orchestrator.gnq.stages.stored import stored, trace_of
from orchestrator.kinds import check_against_data, load_plan, open_design
from tests.cases.runs import audited

pytestmark = pytest.mark.slow

WIDTH, HEIGHT = 12, 14
PEOPLE, EACH = 4, 20
ONE = 1 / 16
SEARCH = {"images": 1, "steps": 6, "learning_rate": 0.05, "tv": 0.05, "starts": 3, "spread": 0.2}
ARMS = ["none", "gnq_log-0.0625", "random-0.0625"]


def write_faces(folder: Path) -> Path:
    """Write s1/1.pgm … s4/20.pgm: each person has a pattern, each image its own noise on it."""
    random = np.random.default_rng(0)
    for person in range(1, PEOPLE + 1):
        (folder / f"s{person}").mkdir(parents=True)
        pattern = random.integers(40, 216, (HEIGHT, WIDTH))
        for number in range(1, EACH + 1):
            pixels = np.clip(pattern + random.normal(0, 40, pattern.shape), 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(folder / f"s{person}" / f"{number}.pgm")
    return folder


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("inversion")
    write_faces(found / "faces")
    return found


def plan_of(place: Path, asked: dict[str, Any] | None = SEARCH, **changes: Any) -> GnqPlan:
    values: dict[str, Any] = {
        "audit.attacks": ["loss"],
        "audit.bins": 2,
        "audit.checkpoints": 1,
        "audit.inversion": asked,
        "data.name": f"folder:{place / 'faces'}",
        "split": {"pools": 2, "train_size": 16, "shadows": 4, "test": 16},
        "model": {"name": "mlp", "settings": {"hidden": [8]}},
        "recipe": {"learning_rate": 0.01, "epochs": 4, "batch_size": 8},
        "defences": [{"method": "remove", "ranking": name, "share": ONE} for name in ("gnq_log", "random")],
        "compute.workers": 0,
        "compute.device": "cpu",
        "compute.store": str(place / "store"),
    }
    plan = load_plan("gnq-smoke", values=values | {name.replace("__", "."): value for name, value in changes.items()})
    assert isinstance(plan, GnqPlan)
    return plan


@pytest.fixture(scope="module")
def finished(place: Path) -> tuple[Result, Path]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("orchestrator.engine.run.run.Run.watch", lambda self, settings, left, **how: None)
        patch.setattr("orchestrator.engine.run.run.Run.track", lambda self, document: None)
        patch.setattr("orchestrator.report.writing.draw", lambda makers, folder: {})
        return audited(plan_of(place), place / "out", shown=True), place / "out"


@pytest.fixture(scope="module")
def context(place: Path, finished: tuple[Result, Path]) -> Context:
    store = Store(str(place / "store"))
    design: Any = open_design(plan_of(place), store)
    return WorkerContext(KIND, design, store)


def jobs_of(context: Context) -> list[Job]:
    return list(of_stage(context.design.jobs(), "invert"))


def left_by(context: Context, job: Job) -> tuple[list[dict[str, Any]], dict[str, np.ndarray]]:
    artefact = context.store.get("invert", job.key)
    return json.loads(artefact.read(LIKENESS))["rows"], unpack_arrays(artefact.read(IMAGES))


def test_each_arm_and_pool_is_searched_once(context: Context) -> None:
    assert [(job.label, job.unit) for job in jobs_of(context)] == [(arm, pool) for arm in ARMS for pool in (0, 1)]
    assert len(context.store.keys("invert")) == 6


def test_the_most_exposed_own_image_is_sought_from_the_mean_of_what_the_target_never_saw(context: Context) -> None:
    design: GnqJobs = context.design
    pixels = design.data.inputs[:].astype(np.float64) / 255
    for job in jobs_of(context):
        rows, arrays = left_by(context, job)
        for place, target in enumerate(design.of(job.unit, "target")):
            pool = design.drawn.pools[job.unit]
            own, other = pool[target.half], pool[~target.half]
            scores = RANKINGS["gnq_log"](trace_of(context, target), target.seed)
            point = own[max(range(len(own)), key=lambda i: scores[i])]
            assert {row["point_id"] for row in rows if row["target"] == target.index} == {point}
            same = [i for i in own if design.data.labels[i] == design.data.labels[point] and i != point]
            twins = [i for i in other if design.data.labels[i] == design.data.labels[point]]
            assert np.allclose(arrays["image"][place, 0], pixels[point], atol=1e-6)
            assert np.allclose(arrays["start"][place], sum(pixels[i] for i in other) / len(other), atol=1e-6)
            mean = sum(pixels[i] for i in same) / len(same) if same else np.full((1, HEIGHT, WIDTH), np.nan)
            assert np.allclose(arrays["class_mean"][place, 0], mean, atol=1e-6, equal_nan=True)
            row = next(row for row in rows if row["target"] == target.index)
            assert (row["same_class"], row["same_class_twin"]) == (len(same), len(twins))
            assert row["label"] == design.data.classes[design.data.labels[point]]


@pytest.mark.parametrize("arm", ARMS)
def test_own_and_twin_models_of_the_arm_are_inverted_from_the_same_starts(context: Context, arm: str) -> None:
    design: GnqJobs = context.design
    (job,) = (job for job in jobs_of(context) if (job.label, job.unit) == (arm, 1))
    rows, arrays = left_by(context, job)
    settings = InversionSettings(**{name: value for name, value in SEARCH.items() if name != "images"})
    first, second = design.of(1, "target")
    for place, (own, twin) in enumerate(((first, second), (second, first))):
        for name, model in (("own", own), ("twin", twin)):
            row = next(row for row in rows if (row["target"], row["model"]) == (own.index, name))
            found = inversion.invert(
                stored(context, model, arm),
                [list(design.data.classes).index(row["label"])],
                torch.from_numpy(arrays["start"][place]),
                settings,
                seed=context.seed("invert", "1"),
            )
            best = int(found.confidence[0].argmax())
            assert np.allclose(arrays[name][place, 0], found.images[0, best].numpy())
            assert row["confidence"] == pytest.approx(float(found.confidence.max()))
            told = inversion.compare(
                *(torch.from_numpy(arrays[part][place, 0]) for part in (name, "image", "class_mean"))
            )
            for part, value in asdict(told).items():
                assert (row[part] is None) if np.isnan(value) else row[part] == pytest.approx(float(value), abs=1e-6)
    assert not np.allclose(arrays["own"], arrays["twin"])


def cut(ends: tuple[float, float], measure: str) -> tuple[float, float]:
    """Return an interval without what SSIM or a squared error cannot be."""
    return (max(ends[0], -1), min(ends[1], 1)) if measure.startswith("ssim") else (max(ends[0], 0), ends[1])


def models_of(arm: str) -> tuple[str, ...]:
    return ("own", "twin", "start") if arm == "none" else ("own", "twin")


def test_the_start_is_told_as_it_is_before_any_search(context: Context) -> None:
    job = next(job for job in jobs_of(context) if job.label == "none")
    rows, arrays = left_by(context, job)
    for place, target in enumerate(context.design.of(job.unit, "target")):
        row = next(row for row in rows if (row["target"], row["model"]) == (target.index, "start"))
        start, image = (torch.from_numpy(arrays[name][place]) for name in ("start", "image"))
        told = inversion.compare(start.clamp(0, 1), image[0], torch.from_numpy(arrays["class_mean"][place, 0]))
        assert row["ssim_image"] == pytest.approx(float(told.ssim_image), abs=1e-6)
        assert row["mse_image"] == pytest.approx(float(told.mse_image), abs=1e-6)


def test_the_result_holds_means_and_paired_differences_over_pools(
    finished: tuple[Result, Path], context: Context
) -> None:
    document = finished[0].to_json()
    values: dict[tuple[str, str, str], list[float]] = {}
    kinds = set()
    for job in jobs_of(context):
        rows, _ = left_by(context, job)
        for model in models_of(job.label):
            for name in MEASURES:
                each = [np.nan if row[name] is None else row[name] for row in rows if row["model"] == model]
                values.setdefault((job.label, model, name), []).append(float(np.mean(each)))
    told = document["inversions"]
    assert [(row["arm"], row["model"]) for row in told] == [(arm, model) for arm in ARMS for model in models_of(arm)]
    for row in told:
        assert (row["setting"], row["images"]) == ("base", 4)
        for name in MEASURES:
            own = values[row["arm"], row["model"], name]
            expected = (
                (np.mean(own), *cut(ibragimov_mueller_t(own, 0.95), name)) if np.isfinite(own).all() else (None,) * 3
            )
            assert (row[name], row[f"{name}_low"], row[f"{name}_high"]) == pytest.approx(expected)
            kinds.add((name, expected[0] is None))
    assert ("ssim_image", False) in kinds and ("ssim_image", True) not in kinds
    gains = {(row["arm"], row["against"], row["measure"]): row for row in document["inversion_gains"]}
    removal, at_random = ARMS[1:]
    others = {arm: {"twin": (arm, "twin"), "none": ("none", "own")} for arm in ARMS}
    others["none"] = {"twin": ("none", "twin"), "start": ("none", "start")}
    others[removal] |= {"random": (at_random, "own")}
    assert set(gains) == {(arm, each, name) for arm in ARMS for each in others[arm] for name in JUDGED}
    for (arm, against, measure), row in gains.items():
        other = values[*others[arm][against], measure]
        assert row["difference"] == pytest.approx(np.mean(values[arm, "own", measure]) - np.mean(other), abs=1e-12)
        assert row["p_holm"] >= row["p"]


def test_the_page_shows_the_image_its_class_mean_and_what_each_model_gives(
    finished: tuple[Result, Path], place: Path
) -> None:
    document, out = finished[0].to_json(), finished[1]
    pictures = document["inversion_pictures"]
    assert [row["pool"] for row in pictures] == [0, 1]
    page = (out / "report.html").read_text("utf-8")
    for row in pictures:
        assert [arm["arm"] for arm in row["arms"]] == ARMS
        shown = [row["image"], row["class_mean"], *(arm[name] for arm in row["arms"] for name in ("own", "twin"))]
        assert all(address in page for address in shown)
        files = sorted((place / "faces" / row["label"]).glob("*.pgm"))
        decoded = np.asarray(Image.open(io.BytesIO(base64.b64decode(row["image"].split(",")[1]))).convert("L"))
        assert any((abs(np.asarray(Image.open(file)) - decoded.astype(int)) <= 1).all() for file in files)
    assert 'id="inversion"' in page and "Model inversion" in page
    assert "what model inversion finds" in KIND.open_page().markdown(out)


def test_a_second_run_does_nothing_and_says_the_same(finished: tuple[Result, Path], place: Path) -> None:
    store = Store(str(place / "store"))
    before = {stage: store.keys(stage) for stage in ("train", "defend", "invert", "score")}
    again = audited(plan_of(place), place / "again").to_json()
    assert {stage: store.keys(stage) for stage in before} == before
    assert again["population"]["trained"] == 0
    for field in ("inversions", "inversion_gains", "inversion_pictures", "table"):
        assert again[field] == finished[0].to_json()[field]


@pytest.mark.long
def test_an_arm_whose_target_cannot_be_trained_is_left_out_and_nothing_is_compared_with_it(
    finished: tuple[Result, Path], context: Context, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unlucky, calls = seed_of(context.design.models["1-target-0"].retraining_seed), Counter[int]()
    removal, lost = f"gnq_log-{2 * ONE}", f"random-{2 * ONE}"

    def diverging(*args: Any, seed: int, **kwargs: Any) -> Any:
        calls[seed] += 1
        if seed == unlucky and calls[seed] == 2:  # behind the second arm
            raise FloatingPointError("training diverged in epoch 1")
        return fit(*args, seed=seed, **kwargs)

    monkeypatch.setattr(defending, "fit", diverging)
    monkeypatch.setattr("orchestrator.engine.run.run.Run.watch", lambda self, settings, left, **how: None)
    monkeypatch.setattr("orchestrator.engine.run.run.Run.track", lambda self, document: None)
    monkeypatch.setattr("orchestrator.report.writing.draw", lambda makers, folder: {})
    defences = [{"method": "remove", "ranking": name, "share": 2 * ONE} for name in ("gnq_log", "random")]
    document = audited(plan_of(place, defences=defences), place / "lost", shown=True).to_json()
    assert [row["arm"] for row in document["arms"] if row["diverged"]] == [lost]
    assert {row["arm"] for row in document["inversions"]} == {"none", removal}
    assert {(row["arm"], row["against"]) for row in document["inversion_gains"]} == {
        *(("none", "twin"), ("none", "start"), (removal, "twin"), (removal, "none"))
    }
    for field in ("inversions", "inversion_gains"):
        told, whole = (
            [{name: value for name, value in row.items() if name != "p_holm"} for row in each[field]]
            for each in (document, finished[0].to_json())
        )
        assert [row for row in told if row["arm"] == "none"] == [row for row in whole if row["arm"] == "none"]
    for row in document["inversion_pictures"]:
        assert [arm["arm"] for arm in row["arms"]] == ["none", removal] + [lost] * (row["pool"] == 0)
    page = (place / "lost" / "report.html").read_text("utf-8")
    assert "Not judged" not in page and f"arm {lost} is not judged: 1 of its 12 models" in page


def test_without_inversion_every_other_key_is_the_same_and_nothing_is_sought(place: Path) -> None:
    def keys(plan: GnqPlan) -> dict[str, list[str]]:
        return keys_by_stage(open_design(plan, Store(str(place / "store"))).jobs())

    asked, plain = keys(plan_of(place)), keys(plan_of(place, None))
    other = keys(plan_of(place, {**SEARCH, "tv": 0.2}))
    assert "invert" not in plain and len(asked["invert"]) == 6
    assert plain == {stage: found for stage, found in asked.items() if stage != "invert"}
    assert not set(other["invert"]) & set(asked["invert"]) and other["score"] == asked["score"]


def test_defaults_of_the_plan_are_those_of_the_method() -> None:
    assert Inversion().settings == InversionSettings()
    assert load_plan("gnq-smoke").audit.inversion is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("audit.inversion.images=61", "audit.inversion.images is 61; allowed: 1 to 60, the points that a target"),
        ("audit.inversion.images=0", "audit.inversion.images is 0"),
        ("audit.inversion.tv=-1.0", "audit.inversion.tv is -1.0"),
        ("audit.inversion.step=3", "audit.inversion.step is not a field (did you mean 'steps'?)"),
        ("audit.inversion.tv=.inf", "audit.inversion.tv is"),
    ],
)
def test_impossible_searches_are_refused_in_one_line(change: str, said: str) -> None:
    with pytest.raises(BadInput) as caught:
        load_plan("gnq-smoke", [change])
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_points_must_be_ranked_and_be_images_that_ssim_can_compare() -> None:
    with pytest.raises(BadInput, match=r"audit\.inversion seeks points by gnq_log, which reads mode ridge; add it"):
        load_plan("gnq-smoke", ["audit.inversion={}", "audit.modes=[diagonal]", "defences=[]"])
    with pytest.raises(BadInput, match=r"points of digits have shape \(1, 8, 8\); .* 11 pixels or more a side"):
        check_against_data(load_plan("gnq-smoke", ["audit.inversion={}"]))
    # A setting of a sweep may ask for it where the plan does not: refused before anything is trained.
    with pytest.raises(BadInput, match=r"set audit\.inversion to null"):
        open_design(load_plan("gnq-smoke", ["audit.inversion={}"])).jobs()


def test_a_class_that_one_side_does_not_have_is_warned_of_and_its_mean_is_not_told() -> None:
    row = dict.fromkeys(MEASURES, 0.5) | {"confidence": 1.0, "same_class": 0, "same_class_twin": 0, "model": "own"}
    alone = {**row, "ssim_class_mean": None, "mse_class_mean": None}
    pools = [[alone], [row | {"same_class": 3}]]
    found = {"none": [[*pool, *({**pool[0], "model": name} for name in ("twin", "start"))] for pool in pools]}
    own, *_ = inversions("base", found, 0.95)
    assert (own.ssim_image.value, own.ssim_class_mean.value, own.images) == (0.5, None, 2)
    knows, single = inversion_warnings(found)
    unsure = {"none": found["none"], "dp-8": [[row | {"same_class": 3, "confidence": 0.49}]]}
    assert "in 1 of 5 searches no image was found" in inversion_warnings(unsure)[0]
    assert "of 2 images 2 are of a class that the twin has no image of" in knows and "1 of 2 images" in single
    assert Counter(gain.p_holm for gain in inversion_gains("base", found, {}, 0.95)) == Counter({1.0: 4})
