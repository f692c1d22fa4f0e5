"""ONNX graphs in a process of their own, with a limit on time and memory.

A graph may loop for ever, or ask for all memory, and onnxruntime hears of no Ctrl-C while it runs one.
"""

from __future__ import annotations

import io
import json
import os
import select
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audits.data.bounded import room
from audits.own.import_path import SAFE, path_of_workers
from audits.targets import onnx_child
from audits.targets.onnx_child import DESCRIBED, FAILED, LENGTH, MISSING, NUMBERS

MOST_SECONDS, MOST_SECONDS_EACH = 600.0, 10.0
"""For making a graph ready, or answering a batch; and for each of its inputs."""
LEAST_BYTES = 8 * 2**30
"""Of addresses: what Python and onnxruntime reserve, and a graph of usual size."""
READ_BYTES = 2**20
INHERITED = {"PATH", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR", "OMP_WAIT_POLICY"}
"""What a process of a graph has of the environment: no tokens, and no addresses."""


class GraphFailed(Exception):
    """What onnxruntime says of a graph, or why there is no answer."""


class RuntimeMissing(Exception):
    """onnxruntime is not installed."""


@dataclass(frozen=True)
class Value:
    """An input or an output of a graph, as onnxruntime describes it."""

    name: str
    type: str
    shape: tuple[Any, ...]


class Session:
    """A graph that is ready to be run; ``run`` is as that of onnxruntime's sessions.

    The process starts with the session and ends with it, with this process, at Ctrl-C, and where an answer takes more
    than ``MOST_SECONDS`` and that of each input. Making one raises RuntimeMissing, and GraphFailed for a graph that
    cannot be run.
    """

    def __init__(self, data: bytes) -> None:
        self._lock = threading.Lock()
        words = (sys.executable, "-P", onnx_child.__file__, str(max(room(), LEAST_BYTES)))
        path = {"PYTHONPATH": os.pathsep.join(path_of_workers()), **SAFE}
        self._process = subprocess.Popen(
            words,
            cwd="/",  # no library, and no folder of the path, is looked for in the working folder
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={name: os.environ[name] for name in INHERITED & os.environ.keys()} | path,
        )
        self.close = weakref.finalize(self, _end, self._process)
        with tempfile.TemporaryDirectory(prefix="orch-") as empty:  # where it looks for other files that a graph names
            described = json.loads(self._ask(DESCRIBED, empty.encode(), data))
        self._inputs, self._outputs = (
            [Value(name, kind, tuple(shape)) for name, kind, shape in side] for side in described
        )

    def get_inputs(self) -> list[Value]:
        """Return what the graph takes."""
        return self._inputs

    def get_outputs(self) -> list[Value]:
        """Return what the graph gives."""
        return self._outputs

    def run(self, outputs: list[str], inputs: dict[str, NDArray[Any]]) -> list[NDArray[Any]]:
        """Return the values of the one output that is named, for the one input; raises GraphFailed."""
        (output,), ((name, x),) = outputs, inputs.items()
        file = io.BytesIO()
        np.save(file, x, allow_pickle=False)
        answer = self._ask(NUMBERS, json.dumps([output, name]).encode(), file.getvalue(), inputs=len(x))
        found: NDArray[Any] = np.load(io.BytesIO(answer), allow_pickle=False)
        return [found]

    def _ask(self, wanted: bytes, *messages: bytes, inputs: int = 0) -> bytes:
        """Send messages and return the answer to them; the process has ended where this raises, but for FAILED."""
        try:
            with self._lock:
                kind, content = self._exchanged(messages, MOST_SECONDS + inputs * MOST_SECONDS_EACH)
        except BaseException:
            self.close()
            raise
        if kind == MISSING:
            raise RuntimeMissing
        if kind == FAILED:
            raise GraphFailed(content.decode(errors="replace"))
        assert kind == wanted
        return content

    def _exchanged(self, messages: tuple[bytes, ...], seconds: float) -> tuple[bytes, bytes]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        deadline = time.monotonic() + seconds
        ready = select.poll()
        ready.register(self._process.stdout, select.POLLIN)
        try:
            for each in messages:
                self._process.stdin.write(len(each).to_bytes(LENGTH, "big") + each)
            self._process.stdin.flush()
        except OSError:
            raise GraphFailed(self._how_it_ended()) from None
        answer, size = bytearray(), LENGTH
        while len(answer) < size:
            if not ready.poll(max(deadline - time.monotonic(), 0) * 1000):
                raise GraphFailed(
                    f"no answer within {seconds:.0f} seconds; export a graph without an endless loop, or one that "
                    "takes fewer inputs at once"
                )
            part = os.read(self._process.stdout.fileno(), min(READ_BYTES, size - len(answer)))
            if not part:
                raise GraphFailed(self._how_it_ended())
            answer += part
            if len(answer) == LENGTH == size:
                size += int.from_bytes(answer, "big")
        return bytes(answer[LENGTH : LENGTH + 1]), bytes(answer[LENGTH + 1 :])

    def _how_it_ended(self) -> str:
        code = self._process.wait()
        return f"it ended its process ({f'signal {-code}' if code < 0 else f'exit code {code}'})"


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a session's process and forget its pipes."""
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):  # of what was still to be written
                pipe.close()
