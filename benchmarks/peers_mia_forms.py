"""The membership attacks that are compared: ours, LeakPro's and SACRO-ML's, each on the answers that it is handed.

Peers' own code makes every score, at the settings that they come with; only what trains, keeps and asks models is put
aside, since these are trained and asked already.

- LeakPro (https://github.com/aidotse/LeakPro): ``prepare_attack`` and ``run_attack`` of ``AttackLiRA``, ``AttackRMIA``
  and ``AttackBASE``. Its ``ShadowModelHandler`` is replaced by one that hands out logits and who trained on what. Its
  population is the pool; RMIA draws half of it as z.
- SACRO-ML (``sacroml``): ``LIRAAttack._run``, which finds its shadow models trained already in its folder; they answer
  a point's number with the recorded probabilities.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from torch import nn

from audits.arrays import Bools, Floats, Ids, Labels
from audits.mia.answers import Case, Inputs, Posteriors, case_of
from audits.mia.attacks import MIA_ATTACKS
from audits.mia.attacks.base import ShadowAttack
from benchmarks.peers_mia_answers import Handed

SEED = 1
PEERS = {
    "leakpro": "pip install git+https://github.com/aidotse/LeakPro",
    "sacroml": "pip install --editable '.[peers]'",
}
"""Package → how to get it."""


@dataclass(frozen=True)
class Form:
    """One attack. ``ours``: our attack that asks the same; ``package``: whose it is, "" for ours.

    ``prepared`` opens it on what it is handed and gives the function that is timed, which returns scores (K,).
    """

    name: str
    ours: str
    package: str
    prepared: Callable[[Handed], AbstractContextManager[Callable[[], Floats]]]


def forms() -> list[Form]:
    """Return our attacks, and those of the peers that can be imported."""
    found = [Form(f"ours, {words(name)}", name, "", partial(our, attack=name)) for name in OURS]
    found += [
        Form(f"LeakPro, {name}", ours, "leakpro", partial(of_leakpro, attack=attack, online=online))
        for name, (ours, attack, online) in LEAKPRO.items()
    ]
    for (mode, fixed), ours in SACROML.items():
        name = f"SACRO-ML, {mode}, variance {'of all points' if fixed else 'per point'}"
        found.append(Form(name, ours, "sacroml", partial(of_sacroml, mode=mode, fix_variance=fixed)))
    return [form for form in found if form.package not in missing()]


OURS = ("lira", "lira_offline", "lira_offline_moderated", "rmia", "rmia_softened", "rmia_offline")
LEAKPRO = {
    "LiRA online": ("lira", "lira", True),
    "LiRA offline": ("lira_offline", "lira", False),
    "RMIA online": ("rmia_softened", "rmia", True),
    "RMIA offline": ("rmia_offline", "rmia", False),
    "BASE online": ("rmia_softened", "base", True),
    "BASE offline": ("rmia_offline", "base", False),
}
"""Name → ours that asks the same, theirs, and whether online. Their RMIA and BASE take temperature 2 by default."""
SACROML = {
    ("online-carlini", False): "lira",
    ("online-carlini", True): "lira",
    ("offline", False): "lira_offline_moderated",
    ("offline", True): "lira_offline",
    ("offline-carlini", False): "lira_offline",
    ("offline-carlini", True): "lira_offline",
}
"""Mode, and whether it takes one variance for all points → ours that asks the same."""


def words(attack: str) -> str:
    """Return the name of our attack for a reader."""
    name, _, rest = attack.partition("_")
    return f"{name.upper().replace('LIRA', 'LiRA')} {(rest or 'online').replace('_', ', ')}"


def missing() -> list[str]:
    """Return the peers that cannot be imported."""
    return [name for name in PEERS if importlib.util.find_spec(name) is None]


def case(handed: Handed) -> Case:
    """Return the target as our attacks are shown it."""
    known = handed.known
    nothing = np.empty((0, 0))
    return case_of(
        handed.target[None], known.target[None], Inputs(nothing, nothing, handed.labels, known.labels),
        np.ones(len(handed.labels), bool), (handed.shadows, known.shadows, handed.half), None, handed.strangers,
    )  # fmt: skip


@contextmanager
def our(handed: Handed, attack: str) -> Iterator[Callable[[], Floats]]:
    """Open our attack: scores by a fit to all shadows, from logits."""
    fit = MIA_ATTACKS[attack]()
    assert isinstance(fit, ShadowAttack)

    def scores() -> Floats:
        known = handed.known
        target = Posteriors.of(handed.target[None], known.target[None], handed.labels, known.labels)
        shadows = Posteriors.of(handed.shadows, known.shadows, handed.labels, known.labels)
        return fit.scores(target, shadows, handed.half)[0]

    yield scores


@contextmanager
def of_leakpro(handed: Handed, attack: str, online: bool) -> Iterator[Callable[[], Floats]]:
    """Open an attack of LeakPro, whose scores come members first."""
    from leakpro.attacks.mia_attacks import base, lira, rmia

    module, kind = {
        "lira": (lira, "AttackLiRA"),
        "rmia": (rmia, "AttackRMIA"),
        "base": (base, "AttackBASE"),
    }[attack]
    rows = handed.members_first()

    def scores() -> Floats:
        np.random.seed(SEED)  # from which it draws
        opened = getattr(module, kind)(Audited(rows), {"num_shadow_models": len(rows.half), "online": online})
        opened.prepare_attack()
        return handed.back(np.ravel(opened.run_attack().signal_values))

    with mock.patch.object(module, "ShadowModelHandler", return_value=Shadows(rows)):
        yield scores


class Audited:
    """What LeakPro asks its handler of the audited model and its points, here numbered members first."""

    def __init__(self, rows: Handed) -> None:
        self.rows = rows
        self.population = range(len(rows.member))
        self.population_size = len(rows.member)
        self.train_indices = np.flatnonzero(rows.member)
        self.test_indices = np.flatnonzero(~rows.member)
        self.target_model = nn.Identity()  # named by the hash of its weights, and never asked

    def get_criterion(self) -> nn.Module:
        """Return the loss that models were trained by."""
        return nn.CrossEntropyLoss()

    def get_labels(self, points: Ids) -> Labels:
        """Return the classes of points."""
        return self.rows.labels[points]


class Shadows:
    """What LeakPro asks its handler of shadow models, all of which were trained and asked before."""

    target_model_hash = "audited"
    attack_cache_folder_path = ""

    def __init__(self, rows: Handed) -> None:
        self.rows = rows

    def create_shadow_models(self, num_models: int, **_: Any) -> list[int]:
        """Return the numbers of the shadows."""
        return list(range(num_models))

    def get_shadow_models(self, numbers: list[int]) -> tuple[list[None], list[int]]:
        """Return models that nobody asks: their logits at all points of the population are there."""
        return [None] * len(numbers), numbers

    def get_in_indices_mask(self, numbers: list[int], points: Ids) -> Bools:
        """Return (points, shadows): who was trained on what."""
        return self.rows.half[numbers][:, points].T

    def load_logits(self, name: str | None = None, indx: int | None = None) -> NDArray[np.float32]:
        """Return the logits of a shadow by its number, or of the audited model by its name."""
        return self.rows.target if indx is None else self.rows.shadows[indx]


@contextmanager
def of_sacroml(handed: Handed, mode: str, fix_variance: bool) -> Iterator[Callable[[], Floats]]:
    """Open SACRO-ML's LiRA with shadows that lie trained in its folder; a point is its number, members first."""
    from sacroml.attacks.likelihood_attack import LIRAAttack
    from sacroml.attacks.utils import save_shadow_model

    rows, members = handed.members_first(), int(handed.member.sum())
    points = np.arange(len(rows.member))[:, None]
    target = probabilities(rows.target)

    def scores() -> Floats:
        attack._run(
            None, points[:members], rows.labels[:members], target[:members],
            points[members:], rows.labels[members:], target[members:],
        )  # fmt: skip
        return handed.back(np.asarray(attack.result["member_prob"]))

    with TemporaryDirectory() as folder:
        attack = LIRAAttack(
            output_dir=folder, write_report=False, n_shadow_models=len(rows.half), mode=mode,
            fix_variance=fix_variance, report_individual=True,
        )  # fmt: skip
        for number, half in enumerate(rows.half):
            model = Recorded(probabilities(rows.shadows[number]))
            save_shadow_model(attack.shadow_path, number, model, np.flatnonzero(half), np.flatnonzero(~half))
        yield scores


@dataclass(frozen=True)
class Recorded:
    """A model that answers a point's number with its ``answers`` (K, C), as SACRO-ML asks its shadow models."""

    answers: Floats

    def get_classes(self) -> list[int]:
        """Return the classes, one a column of the answers."""
        return list(range(self.answers.shape[1]))

    def predict_proba(self, points: Ids) -> Floats:
        """Return the probabilities (N, C) at points (N, 1)."""
        return self.answers[points[:, 0]]


def probabilities(logits: NDArray[np.float32]) -> Floats:
    """Return the softmax in float64."""
    found: Floats = softmax(logits.astype(np.float64), axis=-1)
    return found
