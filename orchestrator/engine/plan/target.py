"""The section ``target`` of a plan: a model that somebody else has trained, and the points that it was trained on."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, PlainSerializer, PlainValidator, model_validator

from audits.credentials import WEB
from audits.errors import BadInput
from audits.targets.forms import ASKED, PROGRAMS, Form, form_by_name, form_of, is_address
from audits.targets.rules import is_rule
from orchestrator.engine.plan.addresses import Address
from orchestrator.engine.plan.errors import PlanProblems, shown
from orchestrator.engine.plan.sections import Section
from orchestrator.engine.plan.served import Served

Revealed = Literal["labels", "posteriors", "logits", "weights"]
"""What a target shows; each shows what the one before shows."""
SHOWN: dict[str, Revealed] = {
    "labels": "labels",
    "probabilities": "posteriors",
    "log_probabilities": "posteriors",
    "logits": "logits",
}
NEEDS = {"labels": 0, "posteriors": 1, "oracle": 1, "logits": 2, "weights": 3, "white_box": 3}
"""How much an access needs; one that is not listed needs everything."""


def checked_weights(value: Any) -> str | tuple[str, ...]:
    """Return ``value`` if it names a file, or several."""
    if isinstance(value, str) and value:
        return value
    if isinstance(value, list | tuple) and value and all(isinstance(one, str) and one for one in value):
        return tuple(value)
    raise BadInput(
        f"target.weights is {shown(value)}; allowed: a file, or a list of files: checkpoints of one training"
    )


def written_weights(value: Any) -> Any:
    """Return weights as a plan writes them."""
    return list(value) if isinstance(value, tuple) else value


Weights = Annotated[Any, PlainValidator(checked_weights), PlainSerializer(written_weights)]
"""A file, or a tuple of several."""


class Checkpoints(Section):
    """A given model, or several checkpoints of its training: it is never trained here.

    ``weights``: a state dict (.safetensors, .pt, .ckpt, …, a folder of save_pretrained) of the architecture in the
    section ``model``, or several, the checkpoints of one training in their order; of several sets in a file
    FILE#PART names one. ``members``: which points of the data set it was trained on, a rule
    (all, even, odd, START:STOP) or a file of ids (.txt, .csv, .npy). ``steps``: optimiser steps taken before each
    checkpoint, for sums over steps; without it each checkpoint counts once.
    """

    weights: Weights
    members: Annotated[str, Field(min_length=1)]
    steps: tuple[Annotated[int, Field(ge=0)], ...] | None = None

    @property
    def checkpoints(self) -> tuple[str, ...]:
        """The files of the checkpoints, in their order; the last one is the model."""
        return (self.weights,) if isinstance(self.weights, str) else tuple(self.weights)

    @property
    def files(self) -> tuple[str, ...]:
        """The names of all files, each once."""
        lists = () if is_rule(self.members) else (self.members,)
        return tuple(dict.fromkeys([*self.checkpoints, *lists]))


class Target(Section):
    """A given model: it is never trained here. Kinds of audits add what else they need to know about it.

    ``weights``: its file, a state dict (.safetensors, .pt, .ckpt, …, a folder of save_pretrained) of the architecture
    in the section ``model``, or a program that makes logits: TorchScript (.pt, .ts, .torchscript), ONNX (.onnx).
    FILE#PART names one of several sets of weights in a file, or of several outputs of a program. Or, with ``served``,
    the address (http, https) of a server that is asked instead, a table of its answers (.parquet), or the folder of a
    record.
    ``members``: which points of the data set it was trained on, a rule (all, even, odd, START:STOP) or a file of ids
    (.txt, .csv, .npy). ``non_members``: which points it has not seen, null for all others. ``sha256``: the digest of
    each file, by its name, as a run found it and wrote it down; a file that is not the one of the plan is refused.
    """

    POINTS: ClassVar[tuple[str, ...]] = ("members", "non_members")
    """The fields that name points of the data set."""
    MODELS: ClassVar[tuple[str, ...]] = ("weights",)
    """The fields that name a model."""

    weights: Annotated[
        str, Field(min_length=1), Address(token="served.token_env", trusts="served.ca_file", schemes=WEB)
    ]
    members: Annotated[str, Field(min_length=1)]
    non_members: Annotated[str, Field(min_length=1)] | None = None
    served: Served | None = None
    sha256: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        """Refuse a served model that is not described, and a description of answers that nobody gives."""
        if problems := [*self._undescribed(), *self._elsewhere()]:
            raise PlanProblems(problems)
        return self

    def _undescribed(self) -> list[str]:
        form = self.form()
        if form in ASKED and self.served is None:
            return [
                f"target.served is missing: target.weights is {self.weights}, of which only answers are known; say "
                "what they are, target.served.gives: labels, probabilities, log_probabilities or logits"
            ]
        if self.served is None or form == "address":
            return []
        if self.weights.endswith(".safetensors"):
            return [f"target.served is given, but {self.weights} holds weights, which are not served; leave it out"]
        return [
            f"target.served.{name} is given, but {self.weights} is no address (http://, https://) and no server is "
            "asked; leave it out"
            for name in self.served.about_asking
        ]

    def _elsewhere(self) -> list[str]:
        """Return a line for each further model that is served."""
        others = self.named(name for name in self.MODELS if name != "weights")
        return [
            f"target.{name} is {text}, but only target.weights can be a served model or its answers; give a file"
            for name, text in others.items()
            if form_of(text) in ASKED
        ]

    def is_record(self, name: str) -> bool:
        """Say whether a file of the target is the folder of a record of answers."""
        return name == self.weights and self.form(look=False) == "record"

    def form(self, field: str = "weights", *, look: bool = True) -> Form:
        """Return the form of the model in ``field``; ``look`` into a file that its name leaves open, if it is here."""
        find = form_of if look else form_by_name
        return find(getattr(self, field), field == "weights" and self.served is not None)

    def gives(self, field: str = "weights") -> str | None:
        """Return what the model in ``field`` answers with; None for weights, which answer with all that there is."""
        if field == "weights" and self.served is not None:
            return self.served.gives
        return "logits" if self.form(field) in PROGRAMS else None

    def named(self, fields: Iterable[str]) -> dict[str, str]:
        """Return what those of ``fields`` say that say anything."""
        found = {name: getattr(self, name) for name in fields}
        return {name: text for name, text in found.items() if text is not None}

    @property
    def files(self) -> tuple[str, ...]:
        """The names of all files, each once."""
        points = (text for text in self.named(self.POINTS).values() if not is_rule(text))
        models = (text for text in self.named(self.MODELS).values() if not is_address(text))
        return tuple(dict.fromkeys([*models, *points]))


def reveals(target: Target) -> Revealed:
    """Return how much of itself a target shows: labels, posteriors, logits, or weights and all else."""
    gives = target.gives()
    return "weights" if gives is None else SHOWN[gives]


def unreadable(attacks: Mapping[str, str], target: Target, adaptive: Collection[str] = ()) -> list[str]:
    """Return one line for each group of attacks that a plan's target cannot serve: what is wrong, and what to do.

    ``attacks``: name → access (labels, posteriors, logits, oracle, white_box); ``adaptive``: the names of those that
    ask about inputs of their own making, which a table of answers about the points of the data set does not hold.
    """
    shows = reveals(target)
    lines = []
    for access in dict.fromkeys(attacks.values()):
        if NEEDS.get(access, NEEDS["weights"]) > NEEDS[shows]:
            names = [name for name, needs in attacks.items() if needs == access]
            needs = "the weights" if NEEDS.get(access, 3) == NEEDS["weights"] else access
            lines.append(
                f"audit.attacks: {', '.join(names)} {verb(names, 'read')} {needs}, but target.weights "
                f"({target.weights}) shows {shows} alone; leave {them(names)} out{instead(needs, target)}"
            )
    asking = [name for name in attacks if name in adaptive]
    if asking and target.form() == "answers":
        lines.append(
            f"audit.attacks: {', '.join(asking)} {verb(asking, 'ask')} about inputs of {them(asking, 'its', 'their')} "
            f"own making, of which {target.weights} has no answers; leave {them(asking)} out, or give the address of "
            "the served model"
        )
    return lines


def verb(names: Collection[str], word: str) -> str:
    """Return ``word`` for one or more subjects."""
    return word if len(names) > 1 else f"{word}s"


def them(names: Collection[str], one: str = "it", more: str = "them") -> str:
    """Return the pronoun for one or more."""
    return more if len(names) > 1 else one


def instead(needs: str, target: Target) -> str:
    """Return what else could be given."""
    if needs == "the weights":
        return ", or give a state dict (.safetensors, .pt)"
    return f", or let the server give {needs} (target.served.gives)" if target.form() == "address" else ""
