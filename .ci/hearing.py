"""A plugin of pytest that writes down which sentence a failed comparison wanted, and what was said: for golden.py.

Each line of the file in ORCH_HEARD is a JSON object: ``test`` (its id), ``was`` (the sentence or pattern that the test
holds), ``now`` (the text that it was compared with) and ``how``: "part" (of a text), "whole", "either" (``now`` may be
what the test holds) or "pattern".
"""

from __future__ import annotations

import ast
import json
import os
import re
import textwrap
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

ENDS = {("startswith", True, True), ("endswith", True, True)}
PATTERN = re.compile(r"  Expected regex: (?P<was>.*)\n  Actual message: (?P<now>.*)")


def write(how: str, was: str, now: str) -> None:
    """Write one difference down."""
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]
    with open(os.environ["ORCH_HEARD"], "a", encoding="utf-8") as file:
        file.write(json.dumps({"test": test, "how": how, "was": was, "now": now}) + "\n")


def pytest_assertrepr_compare(op: str, left: object, right: object) -> None:
    """Write down what a failed ``in`` or ``==`` compares, if that is text."""
    for how, was, now in differences(op, left, right):
        write(how, was, now)


def differences(op: str, left: Any, right: Any) -> Iterator[tuple[str, str, str]]:
    """Yield how a text is compared, the one that a test may hold, and what was said."""
    if op == "in" and isinstance(left, str):
        if isinstance(right, str):
            yield "part", left, right
        elif isinstance(right, list | tuple | set | frozenset | dict):
            yield from (("whole", left, each) for each in right if isinstance(each, str))
    elif op == "==" and left != right:
        yield from pairs(left, right)


def pairs(left: Any, right: Any) -> Iterator[tuple[str, str, str]]:
    """Yield the texts that differ in two equal shapes."""
    if isinstance(left, str) and isinstance(right, str):
        if left != right:
            yield "either", right, left
    elif isinstance(left, list | tuple) and isinstance(right, list | tuple) and len(left) == len(right):
        for one, other in zip(left, right, strict=True):
            yield from pairs(one, other)
    elif isinstance(left, dict) and isinstance(right, dict):
        for key in left.keys() & right.keys():
            yield from pairs(left[key], right[key])
    elif isinstance(left, set | frozenset) and isinstance(right, set | frozenset):
        for one in right - left:
            yield from (("whole", one, other) for other in left - right if isinstance(one, str))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Any:
    """Write down what a refusal said that ``raises(match=...)`` did not know."""
    if call.excinfo and isinstance(call.excinfo.value, AssertionError | pytest.fail.Exception):
        if found := PATTERN.search(str(call.excinfo.value)):
            write("pattern", ast.literal_eval(found["was"]), ast.literal_eval(found["now"]))
        else:
            for was, now in beginnings(call.excinfo.traceback[-1]):
                write("part", was, now)
    return (yield)


def beginnings(entry: Any) -> Iterator[tuple[str, str]]:
    """Yield what a failed assertion wants a text to begin or to end with, and the text; pieces of it as well."""
    statement = textwrap.dedent(str(entry.statement))
    with suppress(SyntaxError):
        for call in ast.walk(ast.parse(statement)):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and len(call.args) == 1:
                text, wanted = (value(each, entry) for each in (call.func.value, call.args[0]))
                if (call.func.attr, isinstance(text, str), isinstance(wanted, str)) in ENDS and not (
                    getattr(text, call.func.attr)(wanted)
                ):
                    inner = [value(name, entry) for name in ast.walk(call.args[0]) if isinstance(name, ast.Name)]
                    yield from ((was, text) for was in [wanted, *inner] if isinstance(was, str))


def value(node: ast.expr, entry: Any) -> Any:
    """Return the value of an expression that calls nothing in the frame of a failed test; None for any other."""
    if any(isinstance(each, ast.Call | ast.NamedExpr) for each in ast.walk(node)):
        return None
    with suppress(Exception):
        return entry.frame.eval(ast.unparse(node))
