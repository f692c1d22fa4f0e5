"""What importing each test module costs by itself, while tests are collected; ``tests/test_collection.py`` holds it.

CPU seconds of a module are those of its own statements: neither of the modules that it imports, nor of reading and
compiling it. Nothing of this stays behind once all is collected.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.machinery import ExtensionFileLoader, SourceFileLoader
from typing import Any

import pytest
from _pytest.assertion import rewrite

OWN_SECONDS: dict[str, float] = {}
"""Of the modules below ``tests`` that were imported in this process: name → CPU seconds."""

clock: Callable[[], float] = time.process_time


class Exclusive:
    """Adds up what is spent in calls by themselves: what is spent in calls within them is theirs."""

    def __init__(self, own: dict[str, float]) -> None:
        self.own, self.within = own, [0.0]

    def timed(self, call: Callable[..., Any], name: Callable[..., str]) -> Callable[..., Any]:
        """Return ``call`` that notes its seconds under ``name`` of what it is given."""

        def watched(*given: Any) -> Any:
            self.within.append(0.0)
            start = clock()
            try:
                return call(*given)
            finally:
                spent = clock() - start
                self.own[name(*given)] = spent - self.within.pop()
                self.within[-1] += spent

        return watched


@contextmanager
def watching(own: dict[str, float]) -> Iterator[None]:
    """Note in ``own`` what each module costs by itself that is imported meanwhile."""
    exclusive = Exclusive(own)

    def of_module(_: Any, module: Any) -> str:
        return str(getattr(module, "__name__", None) or module.name)

    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        for kind, name in (
            (SourceFileLoader, "exec_module"),
            (ExtensionFileLoader, "exec_module"),
            (ExtensionFileLoader, "create_module"),
            (rewrite.AssertionRewritingHook, "exec_module"),
        ):
            patch.setattr(kind, name, exclusive.timed(getattr(kind, name), of_module))
        for name in ("_rewrite_test", "_read_pyc", "_write_pyc"):
            patch.setattr(rewrite, name, exclusive.timed(getattr(rewrite, name), lambda *_: "compiling"))
        stack.callback(patch.undo)
        yield


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Watch imports while tests are collected, and look for no garbage: what is imported stays.

    Nor is it looked through afterwards, whenever a test leaves garbage behind.
    """
    found: dict[str, float] = {}
    gc.disable()
    with watching(found):
        result = yield
    gc.freeze()
    gc.enable()
    OWN_SECONDS.update({name: seconds for name, seconds in found.items() if name.partition(".")[0] == "tests"})
    return result  # a wrapper's result
