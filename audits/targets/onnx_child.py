"""The process in which an ONNX graph runs: started as a script by ``onnx_apart``, it imports nothing of this project.

It reads messages from standard input and answers on standard output, each with its length in front in eight bytes:
first the folder in which onnxruntime may look for other files, then the graph, whose inputs and outputs it describes,
then the names of an output and an input and the numbers of the input (.npy), for the numbers of the output. An answer
begins with what it is.
"""

from __future__ import annotations

import io
import json
import os
import resource
import signal
import sys
import threading
import time
from contextlib import suppress

DESCRIBED, NUMBERS, FAILED, MISSING = b"D", b"N", b"F", b"M"
"""Kinds of answers: inputs and outputs, an array, the error of a graph, no onnxruntime."""
LENGTH = 8
LOOK_SECONDS = 1.0


def read() -> bytes:
    """Return the next message; the process ends where there is none."""
    head = sys.stdin.buffer.read(LENGTH)
    if len(head) < LENGTH:
        os._exit(0)
    return sys.stdin.buffer.read(int.from_bytes(head, "big"))


def write(kind: bytes, content: bytes) -> None:
    """Send an answer."""
    sys.stdout.buffer.write((len(content) + 1).to_bytes(LENGTH, "big") + kind)
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def end_with(parent: int) -> None:
    """End this process, whatever it is at, once its parent is gone."""
    while os.getppid() == parent:
        time.sleep(LOOK_SECONDS)
    os._exit(0)


def main(most_bytes: int) -> None:
    """Serve one graph in at most ``most_bytes`` of memory, until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever waits for an answer ends this process
    threading.Thread(target=end_with, args=(os.getppid(),), daemon=True).start()
    with suppress(OSError, ValueError):  # a system without such limits
        resource.setrlimit(resource.RLIMIT_AS, (most_bytes, most_bytes))
    folder, data = read().decode(), read()
    try:
        import numpy as np
        import onnxruntime
    except ImportError:
        return write(MISSING, b"")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", folder)
        session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        told = [
            [(each.name, each.type, each.shape) for each in each_side]
            for each_side in (session.get_inputs(), session.get_outputs())
        ]
        write(DESCRIBED, json.dumps(told).encode())
    except Exception as error:  # of onnxruntime, whose errors have no class of their own
        return write(FAILED, str(error).encode())
    while True:
        output, taken = json.loads(read())
        x = np.load(io.BytesIO(read()), allow_pickle=False)
        try:
            (found,) = session.run([output], {taken: x})
            file = io.BytesIO()
            np.save(file, np.asarray(found), allow_pickle=False)
        except Exception as error:  # see above
            write(FAILED, str(error).encode())
        else:
            write(NUMBERS, file.getvalue())


if __name__ == "__main__":
    main(int(sys.argv[1]))
