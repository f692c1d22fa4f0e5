"""Every attack of every audit: access, repeatability, and nothing read that it must not see. One table, one body."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from audits.apollo.attacks import ATTACKS as APOLLO
from audits.conformance.attacks import CHECKS, case_of
from audits.gnq.attacks import POOL_ATTACKS
from audits.mia.attacks import MIA_ATTACKS
from audits.tmia.attacks import ATTACKS as TMIA
from tests.cases.few_trees import few_trees

AUDITS = {"apollo": APOLLO, "gnq": POOL_ATTACKS, "mia": MIA_ATTACKS, "tmia": TMIA}
EVERY = [(audit, name) for audit, table in AUDITS.items() for name in table]


@cache
def inputs(audit: str) -> Any:
    """Return the made-up inputs of an audit's attacks, which are the same for all; a check is that they stay so."""
    return case_of(AUDITS[audit][next(iter(AUDITS[audit]))]).make()


@pytest.mark.usefixtures("few_epochs")
@pytest.mark.parametrize(("audit", "name"), EVERY, ids=["-".join(pair) for pair in EVERY])
def test_every_attack_keeps_to(audit: str, name: str) -> None:
    case = replace(case_of(AUDITS[audit][name]), make=lambda: inputs(audit))
    with few_trees() if name == "qmia" else nullcontext():
        for check in CHECKS:
            check(case)
