"""Carry out a run under faults until it is done, and examine what it left."""

from __future__ import annotations

import contextlib
import socket
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from orchestrator.engine.store.garbage import find_garbage
from orchestrator.engine.store.store import Store
from tests.long.counted import Note, notes
from tests.long.disturbed import Command
from tests.long.fault_kinds import END, Fault, Scenario
from tests.long.strike import LONG, Missed, Place, await_moment, strike
from tests.long.struck_runs import SWEEP, place_for, plan_of

CODES = {"Ctrl-C": (130,), "kill -9 driver": (-9,), "disk full": (3,), "kill -9 of a process of Ray": (0, 3)}
ATTEMPTS = 12


@dataclass
class Carrying:
    """A scenario while it is carried out."""

    scenario: Scenario
    folder: Path
    place: Place
    expected: bytes
    tell: Callable[[str], None]
    attempts: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def noted(self) -> Path:
        return self.folder / "notes"

    def start(self, out: str = "out", tracking: str = "", page: bool = False) -> Command:
        """Start the command, the same each time."""
        self.attempts += 1
        plan = plan_of(self.scenario.work, workers=2, engine=self.scenario.engine)
        file = self.folder / "plan.yaml"
        file.write_text(yaml.safe_dump(plan.resolved()))
        work = self.scenario.work
        words = ["sweep", SWEEP] if work == "sweep" else ["audit", work]
        words += [str(file), "--store", self.place.uri, "--out", str(self.place.folder / out)]
        words += ["--set", f"tracking.uri={tracking}"] if tracking else []
        return Command(self.folder, f"{out}{self.attempts}", self.noted, *words, page=page)

    def carry_out(self) -> None:
        """Let every fault strike, one after another, and go on until the run is done."""
        left = list(self.scenario.faults)
        before: Fault | None = None
        broken = True
        while left or broken:
            if self.attempts >= ATTEMPTS + len(self.scenario.faults):
                raise RuntimeError(f"not done after {self.attempts} attempts")
            with self.tracked(left) as tracking:
                command = self.start(tracking=tracking, page=bool(left) and left[0].moment == END)
                try:
                    struck = self.attempt(command, left, before, tracked=bool(tracking))
                finally:
                    if command.process.poll() is None:
                        command.kill()
                        command.close()
            code = command.process.returncode
            broken = code != 0
            before = struck if broken else None
            if broken and struck is None:
                self.problems.append(f"ended with {code} untouched: {command.last()}")
            elif not broken and left and left[0].moment != END:
                self.examine()
                self.renew()
        self.examine()

    @contextlib.contextmanager
    def tracked(self, left: list[Fault]) -> Iterator[str]:
        """Yield the URI of a server that is away or hangs when that is the fault to come, else nothing."""
        if not (left and "tracking" in left[0].kind):
            yield ""
            return
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))
            if "hangs" in left[0].kind:
                server.listen(64)
            yield f"http://127.0.0.1:{server.getsockname()[1]}"

    def attempt(self, command: Command, left: list[Fault], before: Fault | None, tracked: bool) -> Fault | None:
        """Watch one command; return the fault that it ended by."""
        if before is not None:
            command.wait(lambda: command.begun() or command.says("summing up"), LONG)
            before.lost += time.time() - command.begin
            self.tell(before.line())
        struck = None
        while left:
            fault = left[0]
            if "tracking" in fault.kind and not tracked:
                break
            try:
                await_moment(fault, command)
                over = strike(fault, command, self.place)
            except Missed:
                break
            left.pop(0)
            struck = fault
            fault.by_itself = command.wait(over, LONG)
            if fault.by_itself:
                fault.lost += time.time() - fault.at
                self.tell(fault.line())
                struck = None
            else:
                break
        self.until_over(command)
        names = command.close()
        self.place.free()
        if struck is not None:
            struck.left = names
            fault.lost += max(0.0, (command.end or 0.0) - fault.at)
            struck.by_itself = command.process.returncode == 0
            self.check_promise(struck, command)
            if struck.by_itself:
                self.tell(struck.line())
        elif names and self.scenario.faults:
            self.problems.append(f"left: {names}")
        return struck

    def until_over(self, command: Command) -> None:
        """Wait for the command's end; one that hangs is killed."""
        if not command.wait(command.ended, 3 * LONG):
            self.problems.append(f"hung for {3 * LONG:.0f} s: {command.last()}")
            command.kill()

    def check_promise(self, fault: Fault, command: Command) -> None:
        """Note an exit code or last words that are not those promised."""
        code, said = command.process.returncode, command.complaints()
        over = fault.kind == "Ctrl-C" and code == 0 and fault.moment == END  # it came when the command had ended
        if code not in CODES.get(fault.kind, (0,)) and not over:
            fault.problems.append(f"exit code {code}: {command.last()}")
        if code in (3, 130) and (len(said) != 1 or not said[0].startswith("orch: ")):
            fault.problems.append(f"said {said[-3:]}")
        if code == 130 and said and "stopped; finished models are kept" not in said[-1]:
            fault.problems.append(f"said {said[-1]}")
        if code == 3 and fault.kind == "disk full" and "disk full" not in "".join(said):
            fault.problems.append(f"said {said[-1:]}")
        if "tracking" in fault.kind and "not tracked: " not in command.said.read_text():
            fault.problems.append("no warning that the run is not tracked")

    def pair(self) -> None:
        """Two drivers at once on one store; one of them may be killed in the middle, and is started again."""
        (fault,) = self.scenario.faults
        first, second = self.start("out"), self.start("other")
        fault.at, fault.struck = time.time(), "from the start"
        fault.by_itself = True
        try:
            if fault.chance < 0.5:
                first.wait(lambda: len(first.begun()) >= 2 * fault.after, LONG)
                fault.struck += ", one is killed"
                first.process.kill()
                fault.left = first.close()
            for command in (first, second):
                self.until_over(command)
                fault.left += command.close()
                if command.process.returncode and not (command is first and "killed" in fault.struck):
                    fault.problems.append(f"exit code {command.process.returncode}: {command.last()}")
            if first.process.returncode:
                again = self.start("out")
                self.until_over(again)
                fault.left += again.close()
        finally:
            for command in (first, second):
                command.kill()
        if (self.place.folder / "other" / "scores.parquet").read_bytes() != self.expected:
            fault.problems.append("other scores of the second driver")
        self.tell(fault.line())
        self.examine()

    def examine(self) -> None:
        """Compare the scores, check every artefact, count what was done twice."""
        equal = (self.place.folder / "out" / "scores.parquet").read_bytes() == self.expected
        store = Store(self.place.own)
        damaged = [damage.problem for damage in find_garbage(store, everything=True).damaged]
        ended: dict[tuple[str, str], Note] = {}
        twice = defaultdict(list)
        for note in notes(self.noted):
            job = (note.stage, note.key)
            if note.word == "begin" and job in ended:
                twice[job].append(note)
            if note.word == "end":
                ended.setdefault(job, note)
        lost = [f"{stage}/{key}" for stage, key in ended if not store.has(stage, key)]
        faults = [fault for fault in self.scenario.faults if fault.at and fault.equal is None]
        for fault in faults:
            fault.equal = equal and not damaged and not lost
            fault.problems += damaged + [f"lost {job}" for job in lost]
        for job, again in twice.items():
            for note in again:
                guilty = [fault for fault in faults if ended[job].time < note.time and fault.at < note.time]
                if guilty:
                    guilty[-1].twice += 1
        one = self.scenario
        self.tell(
            f"    run {one.number} ({one.work}, {one.engine}, {one.place}): bits "
            f"{'equal' if equal else 'DIFFER'}, {len(ended)} jobs, {sum(map(len, twice.values()))} done twice, "
            f"{len(damaged)} damaged, {len(lost)} lost{''.join('; ' + text for text in self.problems)}"
        )

    def renew(self) -> None:
        """Begin anew with an empty store, for faults that are left."""
        place = Store(self.place.own)
        for stage in place.stages():
            for key in place.keys(stage):
                place.drop(stage, key)
        self.noted.unlink()


def carry_out(scenario: Scenario, expected: bytes, tell: Callable[[str], None], keep: Path) -> list[str]:
    """Carry out one scenario in a folder of its own; return what went wrong beside its faults."""
    folder = Path(tempfile.mkdtemp(prefix=f"f{scenario.number}-", dir=keep))
    with place_for(scenario, folder) as place:
        carrying = Carrying(scenario, folder, place, expected, tell)
        try:
            carrying.pair() if scenario.place == "pair" else carrying.carry_out()
        except Exception as error:
            carrying.problems.append(f"run {scenario.number} broke: {type(error).__name__}: {error}")
            tell(carrying.problems[-1])
    return carrying.problems
