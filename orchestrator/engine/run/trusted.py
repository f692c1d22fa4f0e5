"""Workers' contexts that know what the user has said of stores, code and addresses, wherever the workers are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from audits.credentials import remember
from audits.own import permission
from audits.training.team import ALONE, Team
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.own_code import code_of
from orchestrator.engine.plan import reach
from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.plan.reaches import reaches
from orchestrator.engine.run.recent import Recent
from orchestrator.engine.run.worker import OpenContexts, WorkerContext
from orchestrator.engine.store.trust import Trust, holding


@dataclass(frozen=True)
class TrustedContexts(OpenContexts):
    """Opens contexts as ``OpenContexts`` does, and does their jobs, by the word of the driver's user.

    ``trust``: what that user has said of stores. ``may_run`` and ``may_reach`` know the code and the addresses that are
    allowed (None: nobody is asked, as in the driver). A worker runs and reaches nothing else, so that what a driver
    forgot to ask about is refused.

    They stand here, because the code of ``OpenContexts`` counts in the keys of all that workers make.
    """

    trust: Trust = field(default_factory=Trust.of, repr=False, compare=False)
    may_run: permission.MayRun | None = field(default_factory=permission.who_is_asked, repr=False, compare=False)
    may_reach: reach.MayReach | None = field(default_factory=reach.who_is_asked, repr=False, compare=False)

    def __call__(self, mates: Team = ALONE) -> Callable[[Any], None]:
        """Return the function that does a job, or helps the first of ``mates`` to do it."""
        perform = super().__call__(mates)

        def perform_as_allowed(job: Job) -> None:
            with self.ask_driver():
                perform(job)

        return perform_as_allowed

    def do(self, context: WorkerContext[Any], job: Job) -> None:
        """Do ``job``; raises Elsewhere while another driver on the same store does it."""
        with self.ask_driver():
            super().do(context, job)

    def open(self, plan_hash: str, lately: Recent | None = None) -> WorkerContext[Any]:
        """Return the context of one plan, whose store is opened as the driver's user would."""
        remember(self.credentials)  # the places of masked addresses are asked about
        with self.ask_driver(), holding(self.trust):
            permission.require_permission(list(code_of(self.plans[plan_hash])))
            require_allowed(self.kind.check(self.plans[plan_hash], ()))
            return super().open(plan_hash, lately)

    @contextmanager
    def ask_driver(self) -> Iterator[None]:
        """Ask about code and addresses whom the driver asks."""
        with ExitStack() as stack:
            if self.may_run is not None:
                stack.enter_context(permission.asking(self.may_run))
            if self.may_reach is not None:
                stack.enter_context(reach.asking(self.may_reach))
            yield


def require_allowed(plan: BasePlan) -> None:
    """Raise BadInput unless the code that ``plan`` names may run and the places that it names may be reached.

    The files that it names are looked at where it is read, which knows the folders that are the user's.
    """
    permission.require_permission(list(code_of(plan.resolved())))
    reach.require_permission([each for each in reaches(plan) if each.file is None])
