"""The closest match of a refusal."""

from __future__ import annotations

import pytest

from audits.errors import did_you_mean

KNOWN = ("optimizer", "learning_rate", "epochs", "weight_decay", "max_epsilon", "auc")


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("lr", "learning_rate"), ("wd", "weight_decay"), ("epoch", "epochs"), ("EPOCHS", "epochs"), ("AUC", "auc"),
        ("eps", "max_epsilon"), ("optim", "optimizer"), ("learning-rate", "learning_rate"),
    ],
)  # fmt: skip
def test_the_closest_word_is_named(word: str, meant: str) -> None:
    assert did_you_mean(word, KNOWN) == f" (did you mean {meant!r}?)"


@pytest.mark.parametrize("word", ["", "l", "xyz", "rl"])
def test_where_none_is_close_none_is_named(word: str) -> None:
    assert did_you_mean(word, KNOWN) == ""
