"""Oracles of served models and of recorded answers: what attacks get cannot be told from a model in this process."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from audits.errors import BadInput
from audits.queries.oracles import Answer, LabelOracle, PosteriorOracle
from audits.queries.served.connection import Connection
from audits.queries.served.endpoint import Endpoint
from audits.queries.served.json_path import Unreadable, kind, look_up
from audits.queries.served.keys import input_keys
from audits.queries.served.patience import Pace, Patience
from audits.queries.served.reading import Reading
from audits.queries.served.record import Record, recorded

Answers = Callable[[torch.Tensor], list[Any]]


@dataclass
class Tally:
    """``asked``: queries of attacks; ``served``: inputs that the server answered; ``requests`` to it, with retries."""

    asked: int = 0
    served: int = 0
    requests: int = 0


class Served:
    """The answers of an endpoint, from the ``record`` (a folder) where they are there, else from the server.

    An answer is recorded before it is used. Without a record every query goes to the server, in batches of
    ``pace.batch`` in the order asked; with one, each input once: posteriors of a server whose rounding depends on the
    batch keep the answer that came first.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        reading: Reading,
        pace: Pace | None = None,
        record: str | os.PathLike[str] | None = None,
    ) -> None:
        self.endpoint, self.reading, self.pace, self.tally = endpoint, reading, pace or Pace(), Tally()
        self._connection = Connection(endpoint)
        self._patience = Patience(endpoint.url, self.pace)
        self._record = None if record is None else Record.open(record, endpoint.described, reading.described)
        self._one_at_a_time = threading.Lock()

    def answers(self, points: torch.Tensor) -> list[Any]:
        """Return the server's answer to each of ``points`` (N, ...), as JSON values that ``reading`` can read."""
        with self._one_at_a_time:
            self.tally.asked += len(points)
            if self._record is None:
                batches = points.split(1 if self.endpoint.single else self.pace.batch)
                return [answer for batch in batches if len(batch) for answer in self._ask(batch)]
            keys = input_keys(points)
            missing = self._record.missing(keys)
            if missing:
                self._record.refresh()
                missing = self._record.missing(missing)
            rows = {key: row for row, key in enumerate(keys)}
            size = 1 if self.endpoint.single else self.pace.batch
            for first in range(0, len(missing), size):
                batch = missing[first : first + size]
                self._record.add(batch, self._ask(points[[rows[key] for key in batch]]))
            return self._record.answers(keys)

    def _ask(self, batch: torch.Tensor) -> list[Any]:
        body = self.endpoint.body(batch)

        def request() -> bytes:
            self.tally.requests += 1
            return self._connection.post(body, len(batch))

        reply = self._patience.ask(request, len(batch))
        try:
            answers = self._extracted(reply, len(batch))
            self.reading.check(answers)
        except Unreadable as error:
            raise BadInput(f"{self.endpoint.url} answered {error}") from error
        self.tally.served += len(batch)
        return answers

    def _extracted(self, reply: bytes, count: int) -> list[Any]:
        try:
            document = json.loads(reply)
        except (ValueError, RecursionError):
            raise Unreadable(f"no JSON but {reply[:60]!r}") from None
        answers = look_up(document, self.endpoint.steps)
        if self.endpoint.single:
            return [answers]
        if not isinstance(answers, list):
            raise Unreadable(f"{kind(answers)} at {self.endpoint.answers}, not a list of answers; see answers")
        if len(answers) != count:
            raise Unreadable(f"{len(answers)} answers to {count} inputs")
        return answers


class HttpLabels(Served):
    """Label-only access to a served model; where it gives scores, the first largest counts."""

    def oracle(self, budget: int | None = None) -> LabelOracle:
        """Return an oracle of labels, of at most ``budget`` queries a point."""
        return labels_of(self.answers, self.reading, budget)


class HttpPosteriors(Served):
    """Access to the probabilities or logits of a served model."""

    def oracle(self, budget: int | None = None) -> PosteriorOracle:
        """Return an oracle of log-probabilities in float64, of at most ``budget`` queries a point."""
        return posteriors_of(self.answers, self.reading, budget)

    def logit_oracle(self, budget: int | None = None) -> PosteriorOracle:
        """Return an oracle of logits in float64; raises BadInput where the server gives none."""
        return logits_of(self.answers, self.reading, budget)


def recorded_labels(
    path: str | os.PathLike[str], reading: Reading | None = None, budget: int | None = None
) -> LabelOracle:
    """Return an oracle that answers from the record in ``path`` alone, read as it was last or as ``reading`` says.

    Asking about an input that the record lacks raises BadInput.
    """
    return labels_of(*replayed(path, reading), budget)


def recorded_posteriors(
    path: str | os.PathLike[str], reading: Reading | None = None, budget: int | None = None
) -> PosteriorOracle:
    """Return an oracle of log-probabilities from the record in ``path`` alone, as ``recorded_labels`` does."""
    return posteriors_of(*replayed(path, reading), budget)


def recorded_logits(
    path: str | os.PathLike[str], reading: Reading | None = None, budget: int | None = None
) -> PosteriorOracle:
    """Return an oracle of logits from the record in ``path`` alone, as ``recorded_labels`` does."""
    return logits_of(*replayed(path, reading), budget)


def replayed(path: str | os.PathLike[str], reading: Reading | None) -> tuple[Answers, Reading]:
    """Return what answers from a record, and how the answers are read."""
    record = recorded(path)

    def answers(points: torch.Tensor) -> list[Any]:
        keys = input_keys(points)
        if missing := record.missing(keys):
            raise BadInput(
                f"the record {str(record.folder)!r} lacks {len(missing)} of {len(set(keys))} inputs, first that in row "
                f"{keys.index(missing[0])} (key {missing[0].hex()}); ask the server with this folder as record"
            )
        return record.answers(keys)

    return answers, reading or Reading(**record.about()["reading"])


def labels_of(answers: Answers, reading: Reading, budget: int | None) -> LabelOracle:
    """Return an oracle of the labels in ``answers``."""
    return LabelOracle(tensors_of(answers, lambda look_up: torch.from_numpy(reading.labels(look_up))), budget)


def posteriors_of(answers: Answers, reading: Reading, budget: int | None) -> PosteriorOracle:
    """Return an oracle of the log-probabilities in ``answers``."""
    if reading.gives == "labels":
        raise BadInput("the server is said to give labels; posteriors need gives=probabilities or logits")
    return PosteriorOracle(tensors_of(answers, reading.log_probabilities), budget)


def logits_of(answers: Answers, reading: Reading, budget: int | None) -> PosteriorOracle:
    """Return an oracle of the logits in ``answers``."""
    if reading.gives != "logits":
        raise BadInput(f"the server is said to give {reading.gives}; logits need gives=logits")
    return PosteriorOracle(tensors_of(answers, lambda look_up: torch.from_numpy(reading.scores(look_up))), budget)


def tensors_of(answers: Answers, read: Callable[[list[Any]], torch.Tensor]) -> Answer:
    """Return what an oracle is made of: answers as tensors on the device of the points."""

    def answer(points: torch.Tensor) -> torch.Tensor:
        try:
            return read(answers(points)).to(points.device)
        except Unreadable as error:  # a record that is read in another way than when it was made
            raise BadInput(f"the record holds {error}") from error

    return answer
