"""The pretended GPU refuses what CUDA refuses, counts what costs there, and computes what the CPU computes."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from audits.data.tensors import TensorSet
from audits.models import make_model
from audits.training.loop import accuracy
from benchmarks.pretended import Counts, Mixed, OnDevice, pretended

Tensors = tuple[torch.Tensor, torch.Tensor]


@pytest.fixture
def counts() -> Iterator[Counts]:
    with pretended() as found:
        yield found


def network() -> nn.Module:
    return make_model("mlp", {"hidden": [6], "batch_norm": True}).build((5,), 4, 0)


def data(seed: int = 0) -> Tensors:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(12, 5, generator=generator), torch.randint(4, (12,), generator=generator)


# ------------------------------------------------------------------------------------------------------------- refuses

MIXES: dict[str, Callable[[torch.Tensor, torch.Tensor], object]] = {
    "sum": lambda here, there: here + there,
    "in place": lambda here, there: here.add_(there),
    "into the CPU's": lambda here, there: there.add_(here),
    "product": lambda here, there: there @ here,
    "layer": lambda here, there: F.linear(here, there),
    "where": lambda here, there: torch.where(here > 0, here, there),
    "stack": lambda here, there: torch.stack([here, there]),
    "stack of scalars": lambda here, there: torch.stack([here[0, 0], there[0, 0]]),
    "a scalar of the device": lambda here, there: there * here[0, 0],
    "the CPU's by an index of the device": lambda here, there: there[here.long()[0]],
    "gather": lambda here, there: here.gather(0, there.long()),
    "loss": lambda here, there: F.cross_entropy(here, there[0].long()),
    "generator": lambda here, there: torch.rand(3, device=here.device, generator=torch.Generator()),
    "generator of the device": lambda here, there: torch.rand(3, generator=torch.Generator(device="cuda")),
    "in place by a generator": lambda here, there: here.normal_(generator=torch.Generator()),
}


@pytest.mark.parametrize("name", MIXES)
def test_what_cuda_refuses_to_mix_is_refused(name: str, counts: Counts) -> None:
    with pytest.raises(Mixed, match=r"same device|device type for generator"):
        MIXES[name](torch.zeros(4, 4, device="cuda"), torch.zeros(4, 4))


def test_numbers_of_the_cpu_and_its_indices_are_taken_as_cuda_takes_them(counts: Counts) -> None:
    here = torch.arange(4.0, device="cuda")
    assert (here * torch.tensor(2.0)).cpu().tolist() == [0, 2, 4, 6]
    assert torch.where(here > 1, here, torch.tensor(-1.0)).cpu().tolist() == [-1, -1, 2, 3]
    counts.clear()
    assert here[torch.tensor([3, 1])].device.type == "cuda"
    assert counts.copies.total() == 1 and not counts.syncs


def test_numpy_gets_nothing_that_was_not_copied_to_the_host(counts: Counts) -> None:
    here = torch.ones(3, device="cuda")
    with pytest.raises(TypeError, match=r"Tensor\.cpu\(\)"):
        here.numpy()
    with pytest.raises(TypeError, match=r"Tensor\.cpu\(\)"):
        np.asarray(here)
    assert here.cpu().numpy().tolist() == [1, 1, 1]


# -------------------------------------------------------------------------------------------------------------- counts

WAITS: dict[str, tuple[Callable[[torch.Tensor], object], int]] = {
    "item": (lambda x: x.sum().item(), 1),
    "float": (lambda x: float(x[0]), 1),
    "truth": (lambda x: bool((x > 0).any()), 1),
    "nonzero": (lambda x: x.nonzero(), 1),
    "where": (lambda x: torch.where(x > 0), 1),
    "mask": (lambda x: x[x > 0], 1),
    "values by mask": (lambda x: x.index_put_((x > 0,), torch.zeros(3, device="cuda")), 1),
    "unique": (lambda x: x.unique(), 1),
    "repeats": (lambda x: x.repeat_interleave(x.long()), 1),
    "equal": (lambda x: torch.equal(x, x + 1), 1),
    "cpu": (lambda x: x.cpu(), 1),
    "list": (lambda x: x.tolist(), 1),
    "cholesky": (lambda x: torch.linalg.cholesky(torch.diag(x + 1)), 1),
    "synchronize": (lambda x: torch.cuda.synchronize(), 1),
    "fill by mask": (lambda x: x.masked_fill_(x > 0, 0.0), 0),
    "a number by mask": (lambda x: x.__setitem__(x > 0, 1.0), 0),
    "repeats told": (lambda x: x.repeat_interleave(x.long(), output_size=6), 0),
    "shape": (lambda x: x.reshape(3, 1).shape[0] + len(x), 0),
    "sort": (lambda x: x.sort(), 0),
}


@pytest.mark.parametrize("name", WAITS)
def test_the_host_waits_where_cuda_lets_it_wait(name: str, counts: Counts) -> None:
    work, wanted = WAITS[name]
    x = torch.tensor([1.0, 2.0, 3.0], device="cuda")
    counts.clear()
    work(x)
    assert counts.syncs.total() == wanted, counts.syncs


def test_views_and_allocations_launch_nothing_and_each_computation_one_kernel(counts: Counts) -> None:
    x = torch.zeros(4, 6, device="cuda")
    assert counts.launches.total() == 1
    counts.clear()
    x.T.reshape(3, 8)[:, :2].expand(3, 2).detach().unsqueeze(0)
    torch.empty(3, device="cuda"), torch.empty_like(x)
    assert counts.launches.total() == 1  # the reshape of the transposed has to copy
    counts.clear()
    (x + 1).relu().sum()
    x.double()
    assert counts.launches.total() == 4 and not counts.copies and not counts.syncs


def test_each_copy_from_the_host_is_counted(counts: Counts) -> None:
    made: list[Callable[[], torch.Tensor]] = [
        lambda: torch.zeros(2).to("cuda"),
        lambda: torch.zeros(2).cuda(),
        lambda: torch.tensor([1.0], device="cuda"),
        lambda: torch.as_tensor(np.ones(2), device="cuda"),
        lambda: torch.zeros(2).to(torch.zeros(2, device="cuda")),
        lambda: torch.zeros(2, device="cuda").copy_(torch.ones(2)),
    ]
    for one in made:
        counts.clear()
        assert one().device == torch.device("cuda", 0)
        assert counts.copies.total() == 1


def test_a_count_names_the_line_of_the_project_that_caused_it(counts: Counts) -> None:
    x, y = data()
    accuracy(network().cuda().eval(), TensorSet(x.cuda(), y.cuda()))
    assert list(counts.syncs) == [where for where in counts.syncs if where.startswith("audits/training/loop.py:")]
    assert counts.syncs.total() == 1
    torch.zeros(1, device="cuda").item()
    assert any(where.startswith("tests/benchmarks/test_pretended.py:") for where in counts.syncs)


# ------------------------------------------------------------------------------------------------------------ computes


def trained(device: str) -> dict[str, torch.Tensor]:
    """Return the weights after three steps, each by another optimiser, and a copy on the way."""
    x, y = (part.to(device) for part in data())
    model = network().to(device).train()
    makers: list[Callable[[nn.Module], torch.optim.Optimizer]] = [
        lambda one: torch.optim.AdamW(one.parameters(), fused=True),
        lambda one: torch.optim.SGD(one.parameters(), lr=0.1, momentum=0.9),
        lambda one: torch.optim.Adam(one.parameters()),
    ]
    for make in makers:
        model = copy.deepcopy(model)
        optimizer = make(model)
        F.cross_entropy(model(x), y, label_smoothing=0.1).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        optimizer.zero_grad()
    assert all(value.device.type == device for value in model.state_dict().values())
    return {name: value.cpu() for name, value in model.state_dict().items()}


def test_training_gives_the_weights_of_the_cpu(counts: Counts) -> None:
    found = trained("cuda")
    for name, value in trained("cpu").items():
        torch.testing.assert_close(found[name], value, rtol=1e-5, atol=1e-7)


def test_models_stacked_by_torch_func_give_the_gradients_of_each(counts: Counts) -> None:
    models = [make_model("mlp", {"hidden": [6]}).build((5,), 4, seed).eval() for seed in range(3)]
    x, labels = data()

    def loss(parameters: dict[str, torch.Tensor], inputs: torch.Tensor) -> torch.Tensor:
        made = torch.zeros(len(inputs), device=inputs.device) + F.cross_entropy(
            torch.func.functional_call(models[0], parameters, inputs), labels, reduction="none"
        )
        return made.mean()

    wanted = torch.stack([torch.func.grad(loss, 1)(dict(model.named_parameters()), x) for model in models]).detach()
    here, labels = x.cuda(), labels.cuda()
    stacked, _ = torch.func.stack_module_state([model.cuda() for model in models])
    counts.clear()
    found = torch.func.vmap(torch.func.grad(loss, 1), in_dims=(0, None))(stacked, here)
    assert isinstance(found, OnDevice) and not counts.syncs and not counts.copies
    torch.testing.assert_close(found.cpu(), wanted, rtol=1e-5, atol=1e-7)


def test_gradients_cross_between_devices(counts: Counts) -> None:
    x = torch.rand(3, requires_grad=True)
    (x.cuda() * 3).cpu().sum().backward()
    assert x.grad is not None and x.grad.tolist() == [3, 3, 3] and x.grad.device.type == "cpu"


def test_a_hook_moves_tensors_as_other_code_does(counts: Counts) -> None:
    def add(own: torch.Tensor) -> None:
        own.grad += torch.ones(3).to(own.grad)

    weight = torch.ones(3, device="cuda", requires_grad=True)
    weight.register_post_accumulate_grad_hook(add)
    weight.sum().backward()
    assert weight.grad is not None and weight.grad.tolist() == [2, 2, 2]


def test_a_tensor_given_for_the_result_grows_to_its_size(counts: Counts) -> None:
    info = torch.empty(0, dtype=torch.int32, device="cuda")
    factor, found = torch.linalg.cholesky_ex(torch.eye(3, device="cuda"), out=(torch.empty(3, 3, device="cuda"), info))
    assert int(info) == int(found) == 0 and torch.equal(factor.cpu(), torch.eye(3))


def test_numbers_in_bfloat16_are_those_of_autocast(counts: Counts) -> None:
    with torch.autocast("cuda", torch.bfloat16):
        assert network().cuda().eval()(data()[0].cuda()).dtype == torch.bfloat16


def test_a_seed_decides_the_draws_of_the_device_and_leaves_those_outside_a_fork(counts: Counts) -> None:
    device = torch.device("cuda", 0)
    before = torch.get_rng_state()
    drawn = []
    for _ in range(2):
        with torch.random.fork_rng(devices=[device]):
            torch.cuda.default_generators[0].manual_seed(3)
            drawn.append(F.dropout(torch.ones(20, device=device)).cpu())
    assert torch.equal(*drawn) and torch.equal(before, torch.get_rng_state())
    own = [torch.rand(4, device=device, generator=torch.Generator(device).manual_seed(1)).tolist() for _ in range(2)]
    assert own[0] == own[1]


def test_torch_is_left_as_it_was() -> None:
    before = (torch.cuda.is_available, torch.Generator, torch.autocast, torch.cuda.get_rng_state)
    with pretended():
        here = torch.zeros(2, device="cuda")
        assert torch.cuda.is_available() and torch.cuda.device_count() == 1
        assert torch.cuda.get_device_properties(0).total_memory > 0
        with pytest.raises(Mixed):
            here.add(torch.zeros(2))
    assert (torch.cuda.is_available, torch.Generator, torch.autocast, torch.cuda.get_rng_state) == before
    assert type(torch.zeros(2).to("cpu")) is torch.Tensor
