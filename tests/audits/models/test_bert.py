"""bert: equal seeds give equal weights, padding is not read, and it answers as transformers' own classifier does."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from audits.data.catalogue import load
from audits.data.tensors import TensorSet
from audits.errors import BadInput
from audits.models import MODELS, make_model
from audits.models.layers import layers_of
from audits.training.fit import train_model
from audits.training.loop import accuracy, logits
from audits.training.recipe import Recipe
from orchestrator.cli.main import main
from orchestrator.engine.plan.components import completed
from tests.cases.families import as_one, thinned

SIZES: dict[str, object] = {"vocabulary": 15, "hidden": 8, "heads": 2, "intermediate": 10, "longest": 9}
CLASSES = 3


def build(seed: int = 1, length: int = 6, **settings: object) -> nn.Module:
    return make_model("bert", {**SIZES, **settings}).build((length,), CLASSES, seed)


def texts() -> torch.Tensor:
    x = torch.randint(1, 15, (5, 6), generator=torch.Generator().manual_seed(0))
    x[1, 3:], x[3, 1:], x[4] = 0, 0, 0
    return x


def same_state(one: nn.Module, two: nn.Module) -> bool:
    first, second = one.state_dict(), two.state_dict()
    return first.keys() == second.keys() and all(torch.equal(first[key], second[key]) for key in first)


def test_it_answers_as_the_classifier_of_transformers_with_the_same_weights() -> None:
    model, x = build().eval(), texts()[:4]
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(
        vocab_size=15, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=10,
        max_position_embeddings=9, num_labels=CLASSES, attn_implementation="sdpa",
    )  # fmt: skip
    theirs = BertForSequenceClassification(config).eval()
    for value in model.parameters():
        value.data.mul_(10)  # fresh weights are so small that everybody answers alike
    theirs.load_state_dict(model.state_dict())
    with torch.no_grad():
        found, wanted = model(x), theirs(x, attention_mask=(x != 0).long()).logits
    assert float(wanted.std(0).min()) > 1e-3
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


def test_padding_company_and_the_type_of_numbers_change_no_answer() -> None:
    model, x = build().eval().double(), texts()
    with torch.no_grad():
        found = model(x)
        alone = torch.cat([model(row[None]) for row in x])
        cut = model(x[[1, 3, 4]][:, :3])
    assert bool(found.isfinite().all())
    assert torch.allclose(found, alone, rtol=0, atol=1e-12)
    assert torch.allclose(found[[1, 3, 4]], cut, rtol=0, atol=1e-12)
    assert torch.equal(found, model(x.float()))


def test_it_has_a_body_and_a_head() -> None:
    assert [layer.name for layer in layers_of(build())] == ["bert", "classifier"]


@as_one(
    "settings, says",
    [
        ({"hidden": 0}, "hidden is 0; it must be 1 or more"),
        ({"vocabulary": 0}, "vocabulary is 0; it must be 1 or more"),
        ({"heads": 3}, "heads is 3; it must divide hidden, which is 8"),
        ({"dropout": 1.0}, "dropout is 1.0; allowed"),
        ({"longest": 5}, r"longest is 5, the data's points have 6 tokens.*length=N"),
        ({"weights": "/nowhere"}, r"nowhere/config.json cannot be read: No such file"),
    ],
)
def test_settings_that_cannot_be_are_refused_in_one_line(settings: dict[str, object], says: str) -> None:
    with pytest.raises(BadInput, match=says) as caught:
        build(**settings)
    assert "\n" not in str(caught.value)


@as_one("bad", [15, -1, 1.5, float("nan")])
def test_what_is_no_token_is_refused(bad: float) -> None:
    x = texts().float()
    x[2, 2] = bad
    with pytest.raises(BadInput, match=rf"an input is {bad}.* 0 to 14; raise model.settings.vocabulary"):
        build()(x)


def test_images_and_gradients_at_tokens_are_refused() -> None:
    with pytest.raises(BadInput, match=r"reads texts as token ids \(length,\).*shape \(3, 8, 8\)"):
        make_model("bert", SIZES).build((3, 8, 8), CLASSES, 1)
    with pytest.raises(BadInput, match="token ids cannot be moved"):
        build()(texts().float().requires_grad_())


def test_without_transformers_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(BadInput, match=r"bert needs transformers .*pip install 'orch-audit\[text\]'") as caught:
        build()
    assert "\n" not in str(caught.value)


def test_plans_and_listings_know_it(capsys: pytest.CaptureFixture[str]) -> None:
    settings, problems = completed(MODELS, "bert", {"hidden": 64}, "model.name", "model.settings")
    assert not problems and settings["hidden"] == 64 and settings["vocabulary"] == 10_002
    _, problems = completed(MODELS, "bert", {"hiden": 64}, "model.name", "model.settings")
    assert len(problems) == 1 and "hiden" in problems[0]
    assert main(["ls", "models"]) == 0
    assert "Text classifier" in next(line for line in capsys.readouterr().out.splitlines() if line.startswith("bert "))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A pre-trained BERT of the sizes in SIZES as transformers saves it, with a head of two classes."""
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(
        vocab_size=15, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=10,
        max_position_embeddings=9, num_labels=2,
    )  # fmt: skip
    BertForSequenceClassification(config).save_pretrained(tmp_path)
    return tmp_path


def digest_of(folder: Path) -> str:
    with pytest.raises(BadInput, match="digest is not given") as caught:
        build(weights=str(folder))
    return str(caught.value).split(" have ")[1].split(";")[0]


@pytest.mark.parametrize("old", [False, True])
def test_weights_of_a_folder_are_taken_but_for_the_head(folder: Path, old: bool) -> None:
    file = folder / "model.safetensors"
    given = load_file(file)
    if old:  # of a file of 2018, without the prefix, the pooler and the classifier
        own = {name.removeprefix("bert."): value for name, value in given.items() if name.startswith("bert.")}
        own = {name: value for name, value in own.items() if not name.startswith("pooler.")}
        words = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
        for new, before in words.items():
            own = {name.replace(new, before): value for name, value in own.items()}
        save_file({name: value.half() for name, value in own.items()}, file)
    model, fresh = build(weights=str(folder), digest=digest_of(folder)), build()
    for name, value in model.state_dict().items():
        made = name.startswith("classifier.") or (old and "pooler" in name)
        wanted = fresh.state_dict()[name] if made else given[name]
        assert torch.allclose(value, wanted, rtol=0, atol=1e-4 if old else 0), name
    assert not torch.equal(model.get_parameter("bert.embeddings.word_embeddings.weight"),
                           fresh.get_parameter("bert.embeddings.word_embeddings.weight"))  # fmt: skip


def test_weights_of_another_model_are_refused(folder: Path) -> None:
    digest = digest_of(folder)
    file = folder / "model.safetensors"
    with pytest.raises(BadInput, match=r"has hidden_size 8, the model 16; give a BERT of the sizes"):
        build(weights=str(folder), digest=digest, hidden=16)
    with pytest.raises(BadInput, match=rf"digest is abc, the weights in .* have {digest}"):
        build(weights=str(folder), digest="abc")
    state = load_file(file)
    save_file({name: value for name, value in state.items() if "query.weight" not in name}, file)
    with pytest.raises(BadInput, match=r"lacks encoder.layer.0.attention.self.query.weight"):
        build(weights=str(folder), digest=digest_of(folder))
    save_file({**state, "bert.adapter": torch.ones(2)}, file)
    with pytest.raises(BadInput, match=r"has adapter, which the model does not have so"):
        build(weights=str(folder), digest=digest_of(folder))
    file.write_bytes(b"no weights at all")
    with pytest.raises(BadInput, match=r"model.safetensors cannot be read"):
        build(weights=str(folder), digest=digest_of(folder))
    file.rename(folder / "pytorch_model.bin")
    with pytest.raises(BadInput, match=r"has no \*\.safetensors; other formats are not read"):
        build(weights=str(folder), digest=digest)
    stated = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**stated, "model_type": "roberta"}))
    with pytest.raises(BadInput, match=r"has model_type 'roberta', the model 'bert'"):
        build(weights=str(folder), digest=digest)
    (folder / "config.json").write_text("{")
    with pytest.raises(BadInput, match=r"config.json cannot be read: it is no JSON"):
        build(weights=str(folder), digest=digest)


@pytest.fixture
def reviews(tmp_path: Path) -> Path:
    """Reviews in the layout of aclImdb: each praises or slates, in one word among others."""
    words = ["plot", "actor", "scene", "music", "end"]
    for part in ("train", "test"):
        for name, verdict in (("neg", "awful"), ("pos", "lovely")):
            place = tmp_path / "aclImdb" / part / name
            place.mkdir(parents=True)
            for number in range(12):
                around = [words[(number + step) % 5] for step in range(2 + number % 3)]
                around.insert(number % len(around), verdict)
                (place / f"{number}_1.txt").write_text(" ".join(around))
    return tmp_path


def trained(reviews: Path, seed: int = 1, **recipe: object) -> tuple[nn.Module, TensorSet, TensorSet]:
    """Return a model trained on the first half of the reviews, and both halves."""
    data = load("imdb:aclImdb?length=6&words=20", reviews)
    known, others = data.tensors(range(24)), data.tensors(range(24, 48))
    architecture = make_model("bert", {**SIZES, "hidden": 16, "intermediate": 16, "vocabulary": 22})
    given: Any = {"epochs": 12, "batch_size": 8, "learning_rate": 1e-2, **recipe}
    model = train_model(lambda own: architecture.build(data.shape, 2, own), known, Recipe(**given), seed)
    return model, known, others


@pytest.mark.parametrize("dtype", thinned(("float32", "bfloat16"), ("float32",)))
def test_it_learns_reviews_through_the_catalogue(reviews: Path, dtype: str) -> None:
    model, known, others = trained(reviews, dtype=dtype)
    assert accuracy(model, known) > 0.9
    assert accuracy(model, others) > 0.9
    assert logits(model, known.x, chunk=7).shape == (24, 2)


def test_training_is_repeatable(reviews: Path) -> None:
    assert same_state(trained(reviews, epochs=2)[0], trained(reviews, epochs=2)[0])
    assert not same_state(trained(reviews, epochs=2)[0], trained(reviews, 2, epochs=2)[0])


@pytest.mark.long
def test_private_training_bounds_the_gradients_that_opacus_bounds(reviews: Path) -> None:
    recipe = {"optimizer": "sgd", "learning_rate": 0.5, "epochs": 2, "noise_multiplier": 0.1, "max_grad_norm": 0.1}
    one, _, _ = trained(reviews, **recipe)
    other, _, _ = trained(reviews, **recipe, private_engine="opacus")
    for (name, found), wanted in zip(one.named_parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-5, msg=name)
