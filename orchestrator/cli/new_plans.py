"""Texts of small plans with a comment on each line that a reader is likely to change."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from string import Template
from typing import Any

from audits.errors import BadInput
from orchestrator.engine.plan.files import parse_yaml

COMMENT = 30
"""The column at which comments begin, behind shorter lines."""
SIZES = ("seconds", "minutes", "hours")
"""How long an audit takes on two cores with the embedded data, by order of magnitude; the first says nothing yet."""

APOLLO = """\
audit:
  kind: apollo
  attacks: [apollo, apollo_offline, label_gap, u_lira, rmia]   # orch ls attacks
  search: {epsilon: 0.1, steps: $steps}
  fpr: [$fpr]                 # promised false-positive rate
  bootstrap: $resamples
  permutations: $resamples
split:
  targets: $targets           # intervals are over them
  train_size: $train          # points that each model trains on
  target_pool: $pool
  shadow_pool: $attacker      # points of the attacker
  test_pool: $test
  forget: 0.2                 # share of train_size that each target forgets; or {classes: [3]}, {ids: [17, 4711]}
  candidates: {forget: $asked, unseen: $asked}
  shadows: $shadows           # models of the attacker for each target: a multiple of 4
  offline_shadows: $offline
unlearning:                   # orch ls unlearners; identity and retrain are controls
  - {method: identity}
  - {method: gradient_ascent, learning_rate: 0.01, epochs: 2, clip_norm: 0.1}
  - {method: finetune, learning_rate: 0.002, epochs: 3}
  - {method: retrain}
"""
TMIA = """\
audit:
  kind: tmia
  attacks: [tmia, tmia_posterior, rmia, yeom, label_gap]       # orch ls attacks
  beta: $level                # promised false-positive rate
  asked: $asked               # candidates that attacks by labels alone may ask about
  reconstruction: {points: 10, models: 4}
  reference_samples: $reference
  bootstrap: $resamples
split:
  targets: $targets           # intervals are over them, candidates and reference models
  reference_models: $references   # models of the attacker, which never saw a candidate
  null_models: $null          # control: models that saw none either, and are attacked like targets
  overfitted_models: 4        # control: models that train on half of the candidates alone, which must be found
  candidates: $candidates
  train_size: $train          # points that each target trains on
  attacker_points: $attacker
transfer: {train_size: $train}
"""
GNQ = """\
audit:
  kind: gnq
  attacks: [loss, lira, rmia] # orch ls attacks
  checkpoints: $checkpoints   # looks at all gradients along the training
  bins: 3
  onion: 1
split:
  pools: $pools               # intervals are over them
  train_size: $train          # points that each model trains on; a pool has twice as many
  shadows: $shadows           # models of the attacker for each pool
  test: $test
defences:
  - {method: remove, ranking: gnq_log, share: 0.2}             # orch ls rankings
  - {method: remove, ranking: random, share: 0.2}              # control: what removal does by itself
"""
MIA_AUDIT = """\
audit:
  kind: mia
  attacks: [lira, rmia, loss, label_gap]                       # orch ls attacks
  fpr: [$fpr]                 # promised false-positive rate
  bootstrap: $resamples
  permutations: $resamples
split:
"""
MIA = f"""{MIA_AUDIT}\
  pools: $pools               # intervals are over them
  train_size: $train          # points that each model trains on; a pool has twice as many
  shadows: $shadows           # models of the attacker for each pool
  strangers: $strangers       # shadows of other pools, for thresholds
  null_models: 4              # control: models that saw no point of the pool
  canaries: $canaries         # control: points with a wrong label, which must be found
  test: $test                 # outside of all pools
"""
MIA_TARGET = f"""{MIA_AUDIT}\
  train_size: $own            # members that are asked about at most, beside as many others
  shadows: $shadows           # models of the attacker
  test: $test                 # outside of all pools
"""
GNQ_TARGET = """\
audit: {kind: gnq}
"""
TEXTS = {"apollo": APOLLO, "tmia": TMIA, "gnq": GNQ, "mia": MIA}
OF_TARGETS = {"mia": MIA_TARGET, "gnq": GNQ_TARGET}
"""Kinds whose plan for a given model needs no more than its weights and members."""

TAIL = """\
${target}data: {name: $data}           # orch data ls
model: {name: $model}         # orch ls models; its settings: {settings: {...}}
${recipe}seed: 0
"""
RECIPE = """\
recipe: {optimizer: adamw, learning_rate: $rate, epochs: $epochs, batch_size: $batch, weight_decay: 0.01}$whose
"""
TARGET = """\
target:
  weights: $weights           # $forms; it is never trained
  members: $members           # which points it was trained on: a file of ids, or all, even, odd, START:STOP
"""

ANY_FORM = ".safetensors, .pt, .ckpt, a folder of save_pretrained, .onnx, or an address"
FORMS = {"gnq": ".safetensors, .pt, .ckpt, a folder of save_pretrained, or a list of checkpoints"}
"""Of what form a given model may be."""
WHOSE = "  # write your model's own here"

VALUES: Mapping[str, Mapping[str, tuple[Any, Any, Any]]] = {
    "apollo": {
        "steps": (2, 5, 5), "fpr": (0.2, 0.05, 0.05), "resamples": (200, 2000, 2000), "targets": (3, 8, 16),
        "train": (100, 500, 1000), "pool": (300, 4000, 16000), "attacker": (800, 18000, 36000),
        "test": (200, 2000, 4000), "asked": (20, 50, 100), "shadows": (8, 16, 32), "offline": (2, 8, 16),
        "epochs": (10, 60, 60), "batch": (32, 64, 64), "rate": (0.002, 0.002, 0.002),
    },
    "tmia": {
        "level": (0.1, 0.05, 0.05), "asked": (16, 320, 320), "reference": (200, 4000, 4000),
        "resamples": (50, 1000, 1000), "targets": (6, 20, 40), "references": (12, 40, 100), "null": (4, 10, 20),
        "candidates": (40, 400, 1000), "train": (40, 1000, 2000), "attacker": (400, 20000, 30000),
        "epochs": (8, 12, 12), "batch": (16, 64, 64), "rate": (0.01, 0.003, 0.003),
    },
    "gnq": {
        "checkpoints": (2, 4, 8), "pools": (3, 4, 5), "train": (60, 500, 1000), "shadows": (8, 16, 16),
        "test": (200, 2000, 2000), "epochs": (6, 30, 30), "batch": (12, 50, 50), "rate": (0.01, 0.002, 0.002),
    },
    "mia": {
        "fpr": (0.1, 0.05, 0.05), "resamples": (200, 2000, 2000), "pools": (4, 6, 10), "train": (60, 1000, 2000),
        "own": (200, 1000, 2000),
        "shadows": (8, 16, 32), "strangers": (6, 10, 18), "canaries": (6, 20, 20), "test": (120, 2000, 2000),
        "epochs": (12, 30, 30), "batch": (12, 50, 50), "rate": (0.01, 0.002, 0.002),
    },
}  # fmt: skip

POINTS = {
    "apollo": ("train", "pool", "attacker", "test", "asked"),
    "tmia": ("asked", "reference", "candidates", "train", "attacker"),
    "gnq": ("train", "test"),
    "mia": ("train", "own", "test"),
}
"""The values that are numbers of points, which a plan for small data has less of."""
SHARES = (1.0, 0.7, 0.5, 0.35, 0.25)
"""What a plan of the smallest size may have of its points, if the data do not have them all."""


@dataclass(frozen=True)
class Parts:
    """What a plan is made of: names of data and model, its settings (YAML), a given model and its members; "": none."""

    data: str
    model: str
    settings: str = ""
    target: str = ""
    members: str = ""


def text_of(kind: str, size: str, parts: Parts, share: float = 1.0) -> str:
    """Return the text of a plan with a share of the points of its size. Raises BadInput for settings of no mapping."""
    place = SIZES.index(size)
    values = {name: each[place] for name, each in VALUES[kind].items()}
    values |= {name: 2 * round(share * values[name] / 2) for name in POINTS[kind]}
    target = ""
    if parts.target:
        target = Template(TARGET).substitute(
            weights=quoted(parts.target), members=quoted(parts.members), forms=FORMS.get(kind, ANY_FORM)
        )
    body = (OF_TARGETS if parts.target else TEXTS)[kind]
    recipe = "" if body is GNQ_TARGET else Template(RECIPE).substitute(values, whose=WHOSE if parts.target else "")
    head = f"# An audit of {size}, written by orch new: change what is yours; docs/results/{kind}.md has more.\n"
    model = f"{quoted(parts.model)}{settings_of(parts.settings)}"
    told = {**values, "data": quoted(parts.data), "model": model, "target": target, "recipe": recipe}
    return head + aligned(Template(body + TAIL).substitute(told))


def settings_of(text: str) -> str:
    """Return settings of a model as they stand behind its name in a plan; "" for none."""
    if not text:
        return ""
    found = parse_yaml(text, "model.settings")
    if not isinstance(found, dict):
        raise BadInput(f"model.settings is {text!r}; give a YAML mapping, e.g. {{hidden: [32]}}")
    return f", settings: {json.dumps(found, default=str)}" if found else ""


def aligned(text: str) -> str:
    """Return a text with its comments below each other."""
    lines = []
    for line in text.splitlines():
        code, mark, comment = line.partition(" # ")
        lines.append(f"{code.rstrip():{COMMENT}}{mark}{comment}".rstrip())
    return "\n".join(lines) + "\n"


def quoted(word: str) -> str:
    """Return a word as YAML writes it inside braces."""
    plain = word.replace("_", "").replace("-", "").replace(".", "").replace("/", "")
    if plain.isalnum() and plain.isascii() and not plain[0].isdigit():
        return word
    return f"'{word.replace(chr(39), chr(39) * 2)}'"
