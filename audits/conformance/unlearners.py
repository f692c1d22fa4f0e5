"""Checks of every unlearning method."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from audits.conformance.outcome import different, must
from audits.data.tensors import TensorSet
from audits.training.recipe import Recipe
from audits.unlearning.base import Unlearner


@dataclass(frozen=True)
class UnlearnerCase:
    """A method and what it works on: ``model``, trained by ``recipe`` on both sets; ``build(seed)`` makes another."""

    method: Unlearner
    model: nn.Module
    forget: TensorSet
    retain: TensorSet
    recipe: Recipe
    build: Callable[[int], nn.Module]

    def run(self, model: nn.Module | None = None, seed: int = 4) -> nn.Module:
        """Return what the method makes of ``model``, by default the case's."""
        given = self.model if model is None else model
        forget, retain = copied(self.forget), copied(self.retain)
        return self.method.unlearn(given, forget, retain, seed=seed, recipe=self.recipe, build=self.build)


def given_model_stays(case: UnlearnerCase) -> None:
    """The given model stays bit for bit as it was, in train mode and in eval mode, trainable or frozen."""
    for trainable in (True, False):
        for training in (True, False):
            model = copy.deepcopy(case.model).requires_grad_(trainable).train(training)
            before = copy.deepcopy(model)
            places = [value.data_ptr() for value in model.state_dict().values()]
            case.run(model)
            unlike = different(before, model)
            must(not unlike, f"{', '.join(unlike[:3])} of the given model changed; change the copy, not the original")
            same = [value.data_ptr() for value in model.state_dict().values()] == places
            must(
                same and flags(model) == flags(before),
                "modes, requires_grad or tensors of the given model changed; leave it alone",
            )


def given_sets_stay(case: UnlearnerCase) -> None:
    """The given points stay as they were."""
    sets = copied(case.forget), copied(case.retain)
    case.method.unlearn(case.model, *sets, seed=4, recipe=case.recipe, build=case.build)
    given = [part for data in (case.forget, case.retain) for part in (data.x, data.y)]
    after = [part for data in sets for part in (data.x, data.y)]
    same = all(torch.equal(one, two) for one, two in zip(given, after, strict=True))
    must(same and all(part.grad is None for part in after), "points were changed in place; work on copies")


def new_model(case: UnlearnerCase) -> None:
    """A new model of the same architecture comes back, finite, in eval mode, with gradients enabled."""
    found = case.run(copy.deepcopy(case.model).requires_grad_(False))
    before, after = case.model.state_dict(), found.state_dict()
    must(
        {name: value.shape for name, value in before.items()} == {name: value.shape for name, value in after.items()},
        "the new model's weights have other names or shapes; keep the architecture",
    )
    must(not any(module.training for module in found.modules()), "a module of the new model is in train mode")
    must(all(each.requires_grad and each.grad is None for each in found.parameters()), "its gradients are off, or left")
    must(
        all(bool(torch.isfinite(value).all()) for value in after.values()), "a weight is not finite; learn more slowly"
    )
    shared = {value.data_ptr() for value in after.values()} & {value.data_ptr() for value in before.values()}
    must(not shared, "the new model shares memory with the given one; copy it")


def seeds_decide(case: UnlearnerCase) -> None:
    """The seed alone decides the result, and torch's own generator stays as it was."""
    torch.manual_seed(1)
    first = case.run()
    torch.manual_seed(2)
    before = torch.get_rng_state()
    unlike = different(first, case.run())
    must(not unlike, f"{', '.join(unlike[:3])} differ between two runs of one seed; draw from generators of that seed")
    must(bool(torch.equal(before, torch.get_rng_state())), "torch's generator was moved; use one of your own")


def tells_what_it_reads(case: UnlearnerCase) -> None:
    """Only the sets that the method says it reads decide the result (``reads_forget``, ``reads_retain``)."""
    usual = case.run()
    for name in ("forget", "retain"):
        data: TensorSet = getattr(case, name)
        turned = TensorSet(data.x.flip(0), data.y.roll(1).flip(0))
        parts = {"forget": copied(case.forget), "retain": copied(case.retain), name: turned}
        sets = parts["forget"], parts["retain"]
        found = case.method.unlearn(case.model, *sets, seed=4, recipe=case.recipe, build=case.build)
        if not getattr(case.method, f"reads_{name}"):
            must(not different(usual, found), f"other points to {name} change the result, but reads_{name} is False")


CHECKS: tuple[Callable[[UnlearnerCase], None], ...] = (
    given_model_stays,
    given_sets_stay,
    new_model,
    seeds_decide,
    tells_what_it_reads,
)


def copied(data: TensorSet) -> TensorSet:
    """Return copies of points: a method that changes them in place is found out by one check and spoils no other."""
    return TensorSet(data.x.clone(), data.y.clone())


def flags(model: nn.Module) -> list[bool]:
    """Return modes and requires_grad of a model."""
    return [*(module.training for module in model.modules()), *(each.requires_grad for each in model.parameters())]
