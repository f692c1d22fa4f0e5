"""BERT (Devlin et al., arXiv 1810.04805): the encoder of Hugging Face's transformers with a head, for token ids."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from audits.data.regular import content_of, opened
from audits.data.text import PADDING
from audits.errors import BadInput
from audits.extras import command
from audits.home import expanded
from audits.models.base import MODELS, Architecture
from audits.plain_json import from_json

if TYPE_CHECKING:
    from transformers import BertModel

START = 0.02  # standard deviation of fresh weights, the head's included, as in the paper's code
OF_A_FILE = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}  # old files' names, ours
LEFT_OUT = ("cls.", "classifier.", "embeddings.position_ids")  # heads of other tasks, and a table that is no weight
STATED: dict[str, Any] = {"model_type": "bert", "hidden_act": "gelu", "layer_norm_eps": 1e-12}


@MODELS.register("bert")
@dataclass(frozen=True)
class BERT(Architecture):
    """Text classifier: BERT's encoder on token ids, its first position through a tanh layer, a linear layer.

    A point is ``length`` whole numbers from 0 to ``vocabulary`` − 1, as integers or floats; 0 is padding, which nobody
    attends to. 10 002 ids are padding, the unknown word and the 10 000 words of ``imdb:PATH``; data with fewer words
    leave the others unused. ``longest``: the most tokens a point may have. ``intermediate``: width inside a block.

    The default sizes are those of BERT-tiny (Turc et al., arXiv 1908.08962); BERT-base has ``hidden`` 768, ``blocks``
    12, ``heads`` 12, ``intermediate`` 3072. Without dropout, unlike the paper (0.1). Attention is computed step by
    step: fused forms would give other last bits on other machines.

    ``weights``: a local folder with config.json and *.safetensors of a pre-trained BERT of the same sizes, from which
    all but the head starts; the data's ids must be of its vocabulary (imdb:PATH?pieces=FILE). ``digest``, needed with
    it: the sha256 of *.safetensors, so that results are stored under the weights that they come from. Nothing is
    downloaded or executed.
    """

    vocabulary: int = 10_002
    hidden: int = 128
    blocks: int = 2
    heads: int = 2
    intermediate: int = 512
    longest: int = 512
    dropout: float = 0.0
    weights: str | None = None
    digest: str | None = None

    def __post_init__(self) -> None:
        for name in ("vocabulary", "hidden", "blocks", "heads", "intermediate", "longest"):
            if getattr(self, name) < 1:
                raise BadInput(f"model.settings.{name} is {getattr(self, name)}; it must be 1 or more")
        if self.hidden % self.heads:
            raise BadInput(f"model.settings.heads is {self.heads}; it must divide hidden, which is {self.hidden}")
        if not 0 <= self.dropout < 1:
            raise BadInput(f"model.settings.dropout is {self.dropout}; allowed: 0 up to, but not including, 1")

    def layers(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        if len(shape) != 1:
            raise BadInput(
                f"model.name: bert reads texts as token ids (length,), as imdb gives; the data has shape {shape}"
            )
        if shape[0] > self.longest:
            raise BadInput(
                f"model.settings.longest is {self.longest}, the data's points have {shape[0]} tokens; raise it, or "
                "read fewer tokens (imdb:PATH?length=N)"
            )
        bert = encoder(self.config)
        if self.weights is not None:
            load_encoder(bert, expanded(self.weights), self.digest, self.config)
        return TokenClassifier(bert, self.hidden, classes, self.dropout)

    @property
    def config(self) -> dict[str, Any]:
        """The sizes under the names of transformers' ``BertConfig``."""
        return {
            "vocab_size": self.vocabulary,
            "hidden_size": self.hidden,
            "num_hidden_layers": self.blocks,
            "num_attention_heads": self.heads,
            "intermediate_size": self.intermediate,
            "max_position_embeddings": self.longest,
        } | {"hidden_dropout_prob": self.dropout, "attention_probs_dropout_prob": self.dropout}


class TokenClassifier(nn.Module):
    """A BERT encoder and a linear head; parameters are named as in transformers' ``BertForSequenceClassification``."""

    def __init__(self, bert: BertModel, hidden: int, classes: int, dropout: float) -> None:
        super().__init__()
        self.bert = bert
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(hidden, classes)
        nn.init.normal_(self.classifier.weight, std=START)
        nn.init.zeros_(self.classifier.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return logits (n, classes) of token ids (n, length)."""
        tokens = token_ids(x, self.bert.embeddings.word_embeddings.num_embeddings)
        # One row of positions and types a point: a row that all points share has no gradient of a single one.
        places = torch.arange(tokens.shape[1], device=tokens.device).expand_as(tokens)
        read = (tokens != PADDING) | (places == 0)  # somebody must be attended to in a text without words
        weights = self.classifier.weight
        mask = weights.new_zeros(()).masked_fill(~read, torch.finfo(weights.dtype).min)[:, None, None]
        found = self.bert(tokens, mask, torch.zeros_like(tokens), places)
        logits: torch.Tensor = self.classifier(self.dropout(found.pooler_output))
        return logits


MORE_WORDS = "raise model.settings.vocabulary, or read fewer words (imdb:PATH?words=N)"


def token_ids(x: torch.Tensor, vocabulary: int, name: str = "bert", fix: str = MORE_WORDS) -> torch.Tensor:
    """Return token ids as int64; BadInput for what is no id, and where a gradient at the inputs is asked for.

    ``name``: of the model, and ``fix``: what a user can do about ids that are too large, for messages.
    """
    if x.requires_grad:
        raise BadInput(
            f"model {name}: token ids cannot be moved, so an audit that needs gradients at the inputs does not apply"
        )
    tokens = x.long()
    try:
        strange = x[(tokens != x) | (tokens < 0) | (tokens >= vocabulary)].tolist()
    except RuntimeError:  # under vmap, where no number can be looked at; the same points are asked without it first
        return tokens
    if strange:
        raise BadInput(
            f"model {name}: an input is {strange[0]}; allowed are token ids, whole numbers from 0 to {vocabulary - 1}; "
            f"{fix}"
        )
    return tokens


def encoder(config: dict[str, Any]) -> BertModel:
    """Return a fresh encoder of the sizes in ``config``; BadInput without transformers."""
    try:
        from transformers import BertConfig, BertModel
    except ImportError as error:
        raise BadInput(f"model.name: bert needs transformers ({error}); {command('transformers')}") from error
    given = {**config, "pad_token_id": PADDING, "initializer_range": START, "attn_implementation": "eager"}
    return BertModel(BertConfig(**given))


def load_encoder(bert: nn.Module, folder: Path, digest: str | None, config: dict[str, Any]) -> None:
    """Put the weights of ``folder`` into ``bert``; a file without pooler leaves that one fresh.

    BadInput when the folder lacks them, when they are not of ``digest``, or when they are of another model.
    """
    check_sizes(folder, config)
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise BadInput(f"model.settings.weights: {folder} has no *.safetensors; other formats are not read")
    try:
        found = sha256_of(files)
    except OSError as error:
        raise BadInput(f"model.settings.weights: {folder} cannot be read: {error.strerror or error}") from None
    if digest != found:
        told = "is not given" if digest is None else f"is {digest}"
        raise BadInput(
            f"model.settings.digest {told}, the weights in {folder} have {found}; give that if you mean these"
        )
    state = weights_of(files)
    own = dict(bert.state_dict())
    unknown = [name for name in state if name not in own or state[name].shape != own[name].shape]
    lacking = [name for name in own if name not in state and not name.startswith("pooler.")]
    if unknown or lacking:
        what = f"has {unknown[0]}, which the model does not have so" if unknown else f"lacks {lacking[0]}"
        raise BadInput(f"model.settings.weights: {folder} {what}; give the folder of a BERT of these sizes")
    bert.load_state_dict(own | state)


def check_sizes(folder: Path, config: dict[str, Any]) -> None:
    """Refuse a folder whose config.json is of another model than ``config``, or cannot be read."""
    try:
        stated = from_json(content_of(folder / "config.json"))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is no JSON"
        raise BadInput(f"model.settings.weights: {folder / 'config.json'} cannot be read: {reason}") from None
    for name, wanted in (STATED | {name: size for name, size in config.items() if "dropout" not in name}).items():
        if stated.get(name, wanted) != wanted:
            raise BadInput(
                f"model.settings.weights: {folder} has {name} {stated[name]!r}, the model {wanted!r}; "
                "give a BERT of the sizes in model.settings"
            )


def sha256_of(files: list[Path]) -> str:
    """Return the sha256 (hex) of the contents of ``files``, one after another."""
    whole = hashlib.sha256()
    for file in files:
        with opened(file) as stream:
            while part := stream.read(2**20):
                whole.update(part)
    return whole.hexdigest()


def weights_of(files: list[Path]) -> dict[str, torch.Tensor]:
    """Return the encoder's weights in ``files`` as float32, under the encoder's names."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    found: dict[str, torch.Tensor] = {}
    for file in files:
        try:
            loaded = load_file(file)
        except SafetensorError as error:
            raise BadInput(f"model.settings.weights: {file} cannot be read ({error}); take another copy") from None
        for name, value in loaded.items():
            name = name.removeprefix("bert.")
            if not name.startswith(LEFT_OUT):
                for old, new in OF_A_FILE.items():
                    name = name.replace(old, new)
                found[name] = value.float()
    return found
