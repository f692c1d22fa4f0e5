"""The release gate as JUnit XML: a test case for each limit and for each control."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from xml.etree import ElementTree as ET

from orchestrator.engine.gate_result import FAILED, PASSED, GateResult, trial_warning

NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(document: Mapping[str, Any], gate: GateResult) -> bytes:
    """Return the XML file of a result (the content of result.json).

    A limit that is not passed is a failure, one that is inconclusive an error, a control that failed a failure.
    """
    name = str(document["name"])
    cases = [*limit_cases(name, gate), *control_cases(name, gate)]
    counts = {
        "tests": len(cases),
        "failures": sum(case.find("failure") is not None for case in cases),
        "errors": sum(case.find("error") is not None for case in cases),
    }
    told = {key: str(value) for key, value in counts.items()}
    root = ET.Element("testsuites", {"name": "orch", **told})
    suite = ET.SubElement(root, "testsuite", {"name": name, **told, "time": str(document.get("seconds") or 0)})
    properties = ET.SubElement(suite, "properties")
    for key in ("kind", "plan_hash", "seed"):
        if key in document:
            ET.SubElement(properties, "property", {"name": key, "value": str(document[key])})
    suite.extend(cases)
    if warning := trial_warning(document):
        ET.SubElement(suite, "system-out").text = clean(warning)
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
            ET.SubElement(case, "system-out").text = clean(limit.found())
        else:
            tell(case, "failure" if limit.outcome == FAILED else "error", limit.outcome, limit.why)
        yield case


def control_cases(name: str, gate: GateResult) -> Iterator[ET.Element]:
    """Yield the test case of each control."""
    for control in gate.controls:
        case = test_case(f"{name}.controls", control.control)
        if not control.held:
            tell(case, "failure", "control failed", control.failure)
        yield case


def test_case(group: str, name: str) -> ET.Element:
    """Return a test case, which is passed as long as nothing is told in it."""
    return ET.Element("testcase", {"classname": clean(group), "name": clean(name), "time": "0"})


def tell(case: ET.Element, what: str, kind: str, message: str) -> None:
    """Say in a test case how it came out."""
    ET.SubElement(case, what, {"type": kind, "message": clean(message)}).text = clean(message)


def clean(text: str) -> str:
    """Return a text without characters that XML cannot hold."""
    return NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text)
