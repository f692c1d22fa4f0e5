"""Nouns for the points of a data set: images, reviews or records."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from orchestrator.report.result import look_up

IMAGES = [
    "caltech101",
    "cifar10",
    "cifar100",
    "digits",
    "fashion-mnist",
    "fashion14",
    "flowers102",
    "folder",
    "imagenet",
    "mnist",
    "shards",
]
OTHERS = {"imdb": "reviews"}


def noun(plan: Mapping[str, Any]) -> str:
    """Return what the points of a plan's data set are called, in the plural."""
    name = re.split("[:?]", str(look_up(plan, "data.name") or ""))[0]
    return "images" if name in IMAGES else OTHERS.get(name, "records")
