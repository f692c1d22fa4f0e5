"""Recurrent layers are differentiated in eval mode, where cuDNN is put aside for the call."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from audits.models.recurrent import differentiable
from tests.cases.families import as_one


class Seeing(nn.GRU):
    """A GRU that notes whether cuDNN was there, or breaks."""

    breaks = False

    def forward(self, x: torch.Tensor, state: torch.Tensor | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        self.seen = torch.backends.cudnn.enabled
        if self.breaks:
            raise RuntimeError("broken")
        found: tuple[torch.Tensor, torch.Tensor] = super().forward(x, state)
        return found


@as_one("training", [False, True])
@as_one("wanted", [False, True])
def test_cudnn_stands_aside_only_where_it_would_refuse(training: bool, wanted: bool) -> None:
    model = differentiable(differentiable(nn.Sequential(Seeing(3, 2)))).train(training)
    assert len(model[0]._forward_pre_hooks) == 1
    with torch.set_grad_enabled(wanted):
        model(torch.ones(1, 4, 3))
    assert model[0].seen == (training or not wanted)
    assert torch.backends.cudnn.enabled


def test_cudnn_is_back_when_the_layer_breaks() -> None:
    model = differentiable(nn.Sequential(Seeing(3, 2))).eval()
    model[0].breaks = True
    with pytest.raises(RuntimeError, match="broken"):
        model(torch.ones(1, 4, 3))
    assert torch.backends.cudnn.enabled


@pytest.mark.gpu
@pytest.mark.parametrize("layer", [nn.GRU, nn.LSTM, nn.RNN])
def test_gradients_in_eval_mode_on_a_gpu_are_those_of_the_cpu(layer: type[nn.RNNBase]) -> None:
    model = differentiable(layer(3, 2).double()).eval()
    x = torch.randn(4, 5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    here, there = x.requires_grad_(), x.detach().cuda().requires_grad_()
    (wanted,) = torch.autograd.grad(model(here)[0].square().sum(), here)
    (found,) = torch.autograd.grad(model.cuda()(there)[0].square().sum(), there)
    torch.testing.assert_close(found.cpu(), wanted, rtol=1e-10, atol=1e-12)
