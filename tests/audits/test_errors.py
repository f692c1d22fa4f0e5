"""The closest match of a refusal."""

from __future__ import annotations

from audits.errors import did_you_mean
from tests.cases.families import as_one

KNOWN = ("optimizer", "learning_rate", "epochs", "weight_decay", "max_epsilon", "auc")


@as_one("word, meant", [
        ("lr", "learning_rate"), ("wd", "weight_decay"), ("epoch", "epochs"), ("EPOCHS", "epochs"), ("AUC", "auc"),
        ("eps", "max_epsilon"), ("optim", "optimizer"), ("learning-rate", "learning_rate"),
    ])  # fmt: skip
def test_the_closest_word_is_named(word: str, meant: str) -> None:
    assert did_you_mean(word, KNOWN) == f" (did you mean {meant!r}?)"


@as_one("word", ["", "l", "xyz", "rl"])
def test_where_none_is_close_none_is_named(word: str) -> None:
    assert did_you_mean(word, KNOWN) == ""
