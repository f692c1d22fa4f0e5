"""On a GPU searches ask all shadows at once, find what is found one by one, and no step of them waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest
import torch

from audits.apollo.evidence import KINDS
from audits.apollo.evidence import ladder as ladder_file
from audits.apollo.evidence import oslo as oslo_file
from audits.apollo.evidence import plus as plus_file
from audits.apollo.evidence import search as search_file
from audits.apollo.evidence import shadows as shadows_file
from audits.apollo.evidence import yoqo as yoqo_file
from audits.apollo.evidence.search import search
from audits.apollo.evidence.settings import SearchSettings
from audits.apollo.evidence.shadows import Shadows
from audits.apollo.evidence.yoqo import crafted_chunk
from benchmarks.pretended import Counts, pretended
from tests.audits.apollo.evidence.test_search import SHAPE, problem, with_kept
from tests.audits.test_on_cuda import scene_on

RANGE = (0.0, 1.0)
FORMS = [pytest.param(True, id="stacked"), pytest.param(False, id="one by one", marks=pytest.mark.long)]


@pytest.fixture
def counts() -> Iterator[Counts]:
    with pretended() as found:
        yield found


def moved(shadows: Shadows) -> Shadows:
    """Return the shadows on the pretended GPU."""
    models = [[model.cuda() for model in part] for part in (shadows.original, shadows.unlearned)]
    outside = None if shadows.outside is None else shadows.outside.cuda()
    return replace(shadows, original=models[0], unlearned=models[1], inside=shadows.inside.cuda(), outside=outside)


def prepared(offline: bool, kept: bool) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, Shadows]:
    x, y, start, shadows = problem(seed=3)
    if offline:
        shadows = Shadows(shadows.original, [], torch.zeros_like(shadows.inside), SHAPE)
    return x, y, start, with_kept(shadows, offline) if kept else shadows


def settings_of(steps: int) -> SearchSettings:
    return SearchSettings(alpha=1.0, beta=4.0, epsilon=0.3, steps=steps, learning_rate=0.1)


@pytest.mark.long
@pytest.mark.parametrize("stacks", FORMS)
@pytest.mark.parametrize(("offline", "kept"), [(False, False), (True, True), (False, True)])
def test_a_search_finds_there_what_it_finds_on_the_cpu(
    offline: bool, kept: bool, stacks: bool, counts: Counts, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not stacks:
        monkeypatch.setattr(shadows_file, "stacked", lambda models, sample: None)
    x, y, start, shadows = prepared(offline, kept)
    wanted = search(shadows, x, y, start, settings_of(5), offline=offline, chunk=4)
    found = search(moved(shadows), x.cuda(), y.cuda(), start.cuda(), settings_of(5), offline=offline, chunk=4)
    for name in ("inputs", "radius", "confidence"):
        torch.testing.assert_close(getattr(found, name).cpu(), getattr(wanted, name), rtol=0, atol=1e-10)


@pytest.mark.long  # in ``test_on_cuda.py`` its evidence is gathered there
@pytest.mark.parametrize("stacks", FORMS)
def test_yoqo_finds_there_what_it_finds_on_the_cpu(
    stacks: bool, counts: Counts, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not stacks:
        monkeypatch.setattr(shadows_file, "stacked", lambda models, sample: None)
    monkeypatch.setattr(yoqo_file, "ENOUGH", 1.5)  # some rest on the way, others do not
    x, y, _, shadows = prepared(False, True)
    rows = torch.arange(len(x))
    wanted = crafted_chunk(shadows, rows, x, y, RANGE)
    there = moved(shadows).forms(x[:1].cuda()).now
    assert (there.stacks is not None) == stacks
    found = crafted_chunk(there, rows.cuda(), x.cuda(), y.cuda(), RANGE)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one.cpu(), other, rtol=0, atol=1e-10)


def costs(work: Callable[[int], object], counts: Counts) -> Callable[[str], float]:
    """Return the cost of a step: the difference between work of many steps and of few."""
    found = []
    for steps in (1, 3):
        counts.clear()
        work(steps)
        found.append({name: getattr(counts, name).total() for name in ("launches", "syncs", "copies")})
    return lambda name: (found[1][name] - found[0][name]) / 2


@pytest.mark.parametrize("stacks", FORMS)
@pytest.mark.parametrize("kind", ["search", "yoqo"])
def test_no_step_waits_for_the_gpu_or_copies_to_it(
    kind: str, stacks: bool, counts: Counts, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not stacks:
        monkeypatch.setattr(shadows_file, "stacked", lambda models, sample: None)
    x, y, start, shadows = prepared(False, False)
    given: Any = (moved(shadows), x.cuda(), y.cuda(), start.cuda())
    rows = torch.arange(len(x)).cuda()

    def work(steps: int) -> object:
        if kind == "search":
            return search_file.search(*given, settings_of(steps))
        monkeypatch.setattr(yoqo_file, "STEPS", steps)
        return crafted_chunk(given[0].forms(x[:1].cuda()).now, rows, given[1], given[2], RANGE)

    a_step = costs(work, counts)
    assert a_step("launches") > 10
    assert a_step("syncs") == a_step("copies") == 0


@pytest.mark.long
@pytest.mark.parametrize("stacks", FORMS)
@pytest.mark.parametrize(
    ("kind", "module", "number"),
    [("plus", plus_file, "NEWTON_STEPS"), ("ladder", ladder_file, "NEWTON_STEPS"), ("oslo", oslo_file, "LEVELS")],
)
def test_no_step_of_newton_or_of_oslo_waits(
    kind: str, module: ModuleType, number: str, stacks: bool, counts: Counts, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not stacks:
        monkeypatch.setattr(plus_file, "stacked", lambda models, sample: None)
    monkeypatch.setattr(oslo_file, "FOOLED", 0.0)  # nobody rests
    case = scene_on("cuda").case(kind)

    def work(steps: int) -> object:
        monkeypatch.setattr(module, number, steps)
        return KINDS[kind]().trace(case) if KINDS[kind].traced else KINDS[kind]().gather(case)

    a_step = costs(work, counts)
    assert a_step("launches") > 10
    assert a_step("syncs") == a_step("copies") == 0
