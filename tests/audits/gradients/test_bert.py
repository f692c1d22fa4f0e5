"""Gradients of single texts: the Gram matrix of a BERT is that of plain autograd, and its layers are read by rules."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, grad, vmap

from audits.data.tensors import TensorSet
from audits.gradients import gram
from audits.gradients.engine import pieces
from audits.gradients.survey import surveyed
from audits.training.recipe import Recipe
from audits.uniqueness import uniqueness_from_gram
from audits.uniqueness.accumulate import fit_traced
from audits.uniqueness.diagonal import diagonal_uniqueness
from tests.cases.families import thinned
from tests.cases.layer_models import CLASSES, bert, labels, slow_gradients

EXACT = 1e-10
WORDS = "bert.embeddings.word_embeddings.weight"


def error(found: torch.Tensor, truth: torch.Tensor) -> float:
    assert found.shape == truth.shape
    assert found.dtype == torch.float64
    return float((found - truth).abs().max() / truth.abs().max())


def shared() -> tuple[nn.Module, torch.Tensor]:
    """A BERT whose second block is its first once more, as in ALBERT."""
    model, x = bert()
    blocks = model.get_submodule("bert.encoder.layer")
    assert isinstance(blocks, nn.ModuleList)
    blocks[1] = blocks[0]
    return model, x


class WordsAsHead(nn.Module):
    """Scores words with the embedding that reads them, as models of language do; the first words are the classes."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.bert = body
        words = body.get_parameter("embeddings.word_embeddings.weight")
        self.decoder = nn.Linear(words.shape[1], len(words), bias=False)
        self.decoder.weight = words  # type: ignore[assignment]  # the same parameter, which makes it tied

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mask = torch.ones_like(x)
        places = torch.arange(x.shape[1]).expand_as(x)
        return self.decoder(self.bert(x, mask, torch.zeros_like(x), places).pooler_output)[:, 1 : CLASSES + 1]


def tied() -> tuple[nn.Module, torch.Tensor]:
    model, x = bert()
    return WordsAsHead(model.get_submodule("bert")).eval(), x


MODELS = {"plain": bert, "shared": shared, "tied": tied}


@pytest.mark.parametrize("name", thinned(MODELS, ("plain",)))
def test_gram_norms_and_diagonal_are_those_of_one_backward_pass_a_text(name: str) -> None:
    model, x = MODELS[name]()
    y = labels(len(x))
    truth = slow_gradients(model, x, y)
    assert float(truth.abs().max(1).values.min()) > 1e-6  # the text without a word too has a gradient
    assert error(gram.gram(model, x, y), truth @ truth.T) < EXACT
    assert error(gram.squared_norms(model, x, y), truth.square().sum(1)) < EXACT
    squares = truth.square()
    shift = 0.01 * float(squares.mean())
    slow = torch.stack([(own / (squares.sum(0) - own + shift)).sum() for own in squares])
    assert error(diagonal_uniqueness(model, x, y, ridge=0.01), slow) < EXACT


@pytest.mark.long
def test_gram_is_that_of_vmap_of_grad() -> None:
    model, x = bert()
    twin, y = copy.deepcopy(model).double(), labels(len(x))

    def loss(weights: dict[str, torch.Tensor], point: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(functional_call(twin, weights, (point[None],)), label[None])

    weights = {key: value.detach() for key, value in twin.named_parameters()}
    rows = vmap(grad(loss), (None, 0, 0))(weights, x, y)
    G = torch.cat([row.flatten(1) for row in rows.values()], 1)
    assert error(gram.gram(model, x, y), G @ G.T) < EXACT


@pytest.mark.parametrize(
    ("name", "whole"), thinned([("plain", []), ("shared", []), ("tied", [WORDS])], [("shared", []), ("tied", [WORDS])])
)
def test_only_words_that_score_too_are_read_through_the_whole_model(name: str, whole: list[str]) -> None:
    model, x = MODELS[name]()
    with surveyed(model, x, labels(len(x))) as found:
        assert list(found.whole) == whole
        read = {full for layer in found.tapped for full in layer.parameters.values()}
        assert read | set(whole) == {full for full, _ in model.named_parameters()}
        blocks = [layer for layer in found.tapped if ".encoder." in layer.module]
        assert len(blocks) == (8 if name == "shared" else 16)  # 4 of attention, 2 wide ones, 2 norms
        assert {layer.positions for layer in blocks if layer.positions} == {12 if name == "shared" else 6}


def test_long_texts_are_held_as_gradients_and_rare_words_as_ghosts() -> None:
    model, x = bert(vocabulary=400)
    with surveyed(model, x, labels(len(x))) as found:
        ghost = {piece.parameter: piece.ghost for piece in pieces(found, "pairs", 10**6)}
    assert ghost[WORDS]
    assert not ghost["bert.encoder.layer.0.intermediate.dense.weight"]
    assert ghost["bert.pooler.dense.weight"]  # one position a text: 8 + 8 numbers, not 64


CUTS: list[dict[str, Any]] = [
    {"chunk": 2},
    {"chunk": 1, "parameter_chunk": 400},
    {"chunk": 3, "memory": 20_000},
]


@pytest.mark.long  # of smaller models in ``test_gram.py``
@pytest.mark.parametrize("cut", CUTS)
def test_chunks_and_memory_change_nothing(cut: dict[str, Any]) -> None:
    model, x = bert()
    y = labels(len(x))
    assert error(gram.gram(model, x, y, **cut), gram.gram(model, x, y)) < EXACT


@pytest.mark.long
def test_tokens_may_be_floats_and_padding_may_be_cut() -> None:
    model, x = bert()
    x, y = x[[1, 3]], labels(2)  # three words and one, padded to six
    K = gram.gram(model, x, y)
    assert error(gram.gram(model, x.float(), y), K) < EXACT
    assert error(gram.gram(model, x[:, :3], y), K) < EXACT


@pytest.mark.long
def test_a_training_on_texts_is_watched_as_one_on_images_is() -> None:
    model, x = bert()
    fresh, data = copy.deepcopy(model), TensorSet(x.float(), labels(len(x)))
    trace = fit_traced(model, data, Recipe(epochs=1, batch_size=3, learning_rate=1e-2), seed=0, every=2)
    assert trace.steps.tolist() == [0, 2]
    for seen, at in ((fresh, 0), (model, -1)):
        G = slow_gradients(seen, x, data.y)
        np.testing.assert_allclose(trace.squared_norm[at], G.square().sum(1), rtol=1e-8)
        np.testing.assert_allclose(trace.gnq["ridge"][at], uniqueness_from_gram(G @ G.T), rtol=1e-6)
