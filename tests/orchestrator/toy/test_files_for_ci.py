"""JUnit XML and a Markdown summary of a run, by the real command: limits, controls, and files that are not stale."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock
from xml.etree import ElementTree as ET

import pytest

from orchestrator.cli.main import main
from orchestrator.engine.ci.junit import junit
from orchestrator.engine.ci.summary import summary
from orchestrator.judgement.gate_result import GateResult, LimitResult
from orchestrator.report.result import read_result
from tests.orchestrator.toy import kind
from tests.orchestrator.toy.bench import Bench, control, controlled

LIMITS = ("--fail-above", "auc=0.99", "--fail-above", "right.auc=0.1")


@pytest.fixture
def with_controls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every result two controls, of which one fails beside the attack ``loss``."""
    blind = control("power", "failed", "none", attack="loss", lines="attack")
    seen = control("power", "held", attack="right", lines="attack")
    controlled(monkeypatch, blind, seen, control("null", "held"))


def cases(file: Path) -> dict[str, str]:
    """Return how each test case of a JUnit file came out: passed, failure or error; counts must be true."""
    suites = ET.parse(file).getroot()
    (suite,) = suites
    assert suites.tag == "testsuites" and suite.tag == "testsuite"
    found = {}
    for case in suite.iter("testcase"):
        group = case.attrib["classname"].rpartition(".")[2]
        found[f"{group} {case.attrib['name']}"] = next(
            (child.tag for child in case if child.tag in ("failure", "error")), "passed"
        )
    counts = {"tests": len(found), "failures": 0, "errors": 0}
    for outcome in found.values():
        counts |= {f"{outcome}s": counts[f"{outcome}s"] + 1} if outcome != "passed" else {}
    for element in (suites, suite):
        assert {name: int(element.attrib[name]) for name in counts} == counts
    return found


def test_limits_are_test_cases_and_the_summary_says_the_same(bench: Bench) -> None:
    xml, text = bench.place / "ci" / "orch.xml", bench.place / "summary.md"
    out = ("--out", str(bench.place / "told"))
    assert bench.command("audit", "toy", *out, *LIMITS, "--junit", str(xml), "--summary", str(text)) == 1
    assert cases(xml) == {"gate auc=0.99": "passed", "gate right.auc=0.1": "failure"}
    told = text.read_text()
    assert told.startswith("## toy-audit: gate failed\n")
    assert "\n| auc=0.99 | passed | auc is 0." in told and "\n| right.auc=0.1 | failed | auc is 0." in told
    assert "| worst 2 of 2 lines | auc |\n| --- | --- |\n| base, " in told
    assert "Page: [told/report.html](<told/report.html>)." in told
    before = xml.read_bytes(), told
    assert main(["report", *out[1:], "--junit", str(xml), "--summary", str(text)]) == 0
    assert (xml.read_bytes(), text.read_text()) == before


@pytest.mark.long
@pytest.mark.usefixtures("with_controls")
def test_controls_are_test_cases_and_what_they_leave_open_is_an_error(bench: Bench) -> None:
    """In short: ``test_gated.py``, and the tests of ``tests/orchestrator/engine/ci``."""
    xml, text = bench.place / "open.xml", bench.place / "open.md"
    words = ("--out", str(bench.place / "told"), "--junit", str(xml), "--summary", str(text))
    assert bench.command("audit", "toy", *words, *LIMITS) == 1
    assert cases(xml) == {
        "gate auc=0.99": "error", "gate right.auc=0.1": "failure",
        "controls power": "failure", "controls null": "passed",
    }  # fmt: skip
    assert "| auc=0.99 | inconclusive | control power: none; auc is 0.676 (base, loss) |" in text.read_text()
    assert "| power | failed | none |\n| null | held |  |" in text.read_text()
    assert "| control |" not in text.read_text(), "they are those of the lines of the limits alone"
    assert bench.command("audit", "toy", *words) == 0  # no limit, but the controls are told of
    assert "| control |" in text.read_text()
    assert cases(xml) == {"controls power": "failure", "controls null": "passed"}


def test_a_run_that_breaks_leaves_its_error_and_nothing_of_an_earlier_run(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    xml, text = bench.place / "stale.xml", bench.place / "stale.md"
    words = ("--out", str(bench.place / "broken"), "--junit", str(xml), "--summary", str(text))
    raised: BaseException
    for raised, code in ((RuntimeError("no more <luck>"), 3), (KeyboardInterrupt(), 130), (BrokenPipeError(), 141)):
        monkeypatch.setattr("orchestrator.cli.audit.run_audit", Mock(side_effect=raised))
        monkeypatch.setattr("orchestrator.cli.main.close_stdout", lambda: None)
        xml.write_bytes(junit({"name": "stale"}, GateResult()))
        assert bench.command("audit", "toy", *words) == code
        assert cases(xml) == {"orch orch audit": "error"}
        (error,) = ET.parse(xml).getroot().iter("error")
        assert error.attrib["type"] == f"exit code {code}"
        assert text.read_text().startswith(f"## audit: exit code {code}\n".replace("audit", "orch audit"))
        assert str(raised) in error.attrib["message"]
    capsys.readouterr()
    for place in (bench.place, Path("/proc/none/orch.xml")):
        assert bench.command("audit", "toy", "--junit", str(place)) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1


def test_no_file_that_orch_did_not_write_is_overwritten(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    mine, out = bench.place / "mine.yaml", bench.place / "kept"
    mine.write_text("seed: 1\n")
    assert bench.command("audit", "toy", "--out", str(out)) == 0
    result = (out / "result.json").read_bytes()
    for command in (("audit", "toy", "--out", str(out)), ("report", str(out))):
        for words in (
            ("--junit", str(mine)),
            ("--summary", str(mine)),
            ("--junit", str(out / "result.json")),
            ("--junit", "/dev/null"),
            ("--junit", str(bench.place / "same"), "--summary", str(bench.place / "same")),
        ):
            capsys.readouterr()
            run = bench.command if command[0] == "audit" else lambda *given: main([*given])
            assert run(*command, *words) == 2, words
            assert len(capsys.readouterr().err.splitlines()) == 1
    assert mine.read_text() == "seed: 1\n" and (out / "result.json").read_bytes() == result
    fresh = bench.place / "fresh"
    assert bench.command("audit", "toy", "--out", str(fresh), "--junit", str(fresh / "result.json")) == 2
    assert read_result(fresh)["kind"] == "toy"
    for _ in range(2):  # its own files are written anew
        assert main(["report", str(out), "--junit", str(out / "a.xml"), "--summary", str(out / "a.md")]) == 0


def test_no_name_breaks_out_of_xml_or_of_a_table() -> None:
    limit = LimitResult('<"&|\x00', "auc", 0.1, 0.5, "a|b", "failed", ("a|b < `c`\n| d",))
    gate = GateResult("failed", (limit,), (control("x\x1b", "failed", "]]>"),))
    document = {"name": "odd", "kind": "toy"}
    root = ET.fromstring(junit(document, gate))
    assert [case.attrib["name"] for case in root.iter("testcase")] == [
        '<"&|\\x00',
        "x\\x1b",
    ]
    told = summary(document, gate, kind.KIND.headline, [], ["<b>"], "none")
    assert '| <"&\\|\\\\x00 | failed | a\\|b < \\`c\\` \\| d |' in told and "\\<b>" in told
