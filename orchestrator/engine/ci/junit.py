"""The release gate as JUnit XML: a test case for each limit and for each control."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from xml.etree import ElementTree as ET

from orchestrator.engine.media import xml
from orchestrator.judgement.gate_result import FAILED, PASSED, GateResult, trial_warning
from orchestrator.judgement.rows import MISSING
from orchestrator.judgement.rule import clears
from orchestrator.judgement.wording import STATES


def junit(document: Mapping[str, Any], gate: GateResult) -> bytes:
    """Return the XML file of a result (the content of result.json).

    A limit that is not passed is a failure, one that is inconclusive an error, a control that failed a failure.
    """
    name = str(document["name"])
    root, suite = suites(name, [*limit_cases(name, gate), *control_cases(name, gate)], document.get("seconds") or 0)
    properties = ET.Element("properties")
    for key in ("kind", "plan_hash", "seed"):
        if key in document:
            ET.SubElement(properties, "property", {"name": key, "value": xml(str(document[key]))})
    suite.insert(0, properties)
    if warning := trial_warning(document):
        ET.SubElement(suite, "system-out").text = xml(warning)
    return written(root)


def junit_of_error(command: str, message: str, code: int) -> bytes:
    """Return the XML file of a ``command`` that has no result: one test case, an error with the exit ``code``."""
    case = test_case("orch", command)
    tell(case, "error", f"exit code {code}", message)
    root, _ = suites(command, [case], 0)
    return written(root)


def suites(name: str, cases: Sequence[ET.Element], seconds: float) -> tuple[ET.Element, ET.Element]:
    """Return the root of an XML file and its one suite, which holds ``cases``."""
    counts = {
        "tests": len(cases),
        "failures": sum(case.find("failure") is not None for case in cases),
        "errors": sum(case.find("error") is not None for case in cases),
    }
    told = {key: str(value) for key, value in counts.items()}
    root = ET.Element("testsuites", {"name": "orch", **told})
    suite = ET.SubElement(root, "testsuite", {"name": xml(name), **told, "time": str(seconds)})
    suite.extend(cases)
    return root, suite


def written(root: ET.Element) -> bytes:
    """Return an XML file."""
    ET.indent(root)
    text: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def is_junit(data: bytes) -> bool:
    """Say whether a file is one that ``junit`` made."""
    return b'<testsuites name="orch"' in data[:200]


def limit_cases(name: str, gate: GateResult) -> Iterator[ET.Element]:
    """Yield the test case of each limit."""
    for limit in gate.limits:
        case = test_case(f"{name}.gate", limit.limit)
        if limit.outcome == PASSED:
            ET.SubElement(case, "system-out").text = xml(limit.value_in_words())
        else:
            tell(case, "failure" if limit.outcome == FAILED else "error", limit.outcome, limit.why)
        yield case


def control_cases(name: str, gate: GateResult) -> Iterator[ET.Element]:
    """Yield the test case of each control."""
    for control in gate.controls:
        case = test_case(f"{name}.controls", control.name)
        if not clears(control):
            tell(case, "failure", f"control {STATES[control.state]}", control.why)
        elif control.state == MISSING:
            ET.SubElement(case, "skipped", {"message": xml(control.why)})
        yield case


def test_case(group: str, name: str) -> ET.Element:
    """Return a test case, which is passed as long as nothing is told in it."""
    return ET.Element("testcase", {"classname": xml(group), "name": xml(name), "time": "0"})


def tell(case: ET.Element, what: str, kind: str, message: str) -> None:
    """Say in a test case how it came out."""
    ET.SubElement(case, what, {"type": xml(kind), "message": xml(message)}).text = xml(message)
