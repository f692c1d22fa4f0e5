"""Files of data sets, opened without waiting: a folder of others may hold a pipe or a device under the name of one."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from io import BufferedReader


class NotRegular(OSError):
    """What is opened is a pipe, a socket or a device."""


def opened(file: Path) -> BufferedReader:
    """Return a file, or what a link of that name leads to, opened to be read.

    Raises OSError as ``open``, NotRegular for what is no file.
    """
    handle = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return open(handle, "rb")
    os.close(handle)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(file))
    raise NotRegular(errno.ENXIO, "it is a pipe or a device, no file", str(file))


def content_of(file: Path) -> bytes:
    """Return the bytes of a file; raises OSError as ``opened``."""
    with opened(file) as stream:
        return stream.read()
