"""Every attack of every audit: access, repeatability, and nothing read that it must not see. One table, one body."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

import pytest

from audits.apollo.attacks import ATTACKS as APOLLO
from audits.conformance.attacks import CHECKS, AttackCase, case_of
from audits.gnq.attacks import POOL_ATTACKS
from audits.mia.attacks import MIA_ATTACKS
from audits.tmia.attacks import ATTACKS as TMIA
from tests.cases.few_trees import few_trees

AUDITS = {"apollo": APOLLO, "gnq": POOL_ATTACKS, "mia": MIA_ATTACKS, "tmia": TMIA}
EVERY = [(audit, name) for audit, table in AUDITS.items() for name in table]


@pytest.mark.usefixtures("few_epochs")
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize(("audit", "name"), EVERY, ids=["-".join(pair) for pair in EVERY])
def test_every_attack_keeps_to(audit: str, name: str, check: Callable[[AttackCase], None]) -> None:
    with few_trees() if name == "qmia" else nullcontext():
        check(case_of(AUDITS[audit][name]))
