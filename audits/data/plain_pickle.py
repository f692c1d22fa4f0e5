"""Pickles that hold plain data, read without unpickling: nothing in a file can name code that runs.

A pickle is a program for a stack machine. This module reads its instructions with ``pickletools.genops`` and carries
out those that build dictionaries, lists, tuples, text, bytes and numbers. Of the functions that a pickle may name it
knows the three with which NumPy arrays are written, by name only, and turns them into an ``Array``, a plain record.
Everything else is refused at the instruction that asks for it.
"""

from __future__ import annotations

import math
import pickletools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from audits.errors import BadInput


@dataclass(frozen=True)
class Name:
    """A function or class that a pickle names; it is never looked up."""

    path: str


@dataclass
class Array:
    """A NumPy array as a pickle describes it, filled by its BUILD instruction."""

    shape: tuple[int, ...] = ()
    content: bytes = b""
    columns_first: bool = False

    def bytes_of_shape(self) -> npt.NDArray[np.uint8]:
        """Return the array, uint8 of ``shape``; ``read_plain_pickle`` has checked that the content fits."""
        return np.frombuffer(self.content, dtype=np.uint8).reshape(self.shape, order="F" if self.columns_first else "C")


class Refusal(Exception):
    """A request of a pickle that is refused."""


MARK, BYTE = object(), object()  # the mark of the stack machine; NumPy's dtype of unsigned bytes
ARRAY_CLASS = Name("numpy.ndarray")
ENCODE, DTYPE = Name("_codecs.encode"), Name("numpy.dtype")
RECONSTRUCT = (Name("numpy.core.multiarray._reconstruct"), Name("numpy._core.multiarray._reconstruct"))
KNOWN = (ARRAY_CLASS, ENCODE, DTYPE, *RECONSTRUCT)

# instructions whose argument is the value; eight-bit strings come as Latin-1 text
PUSHED = frozenset(
    {
        "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "SHORT_BINSTRING", "BINSTRING",
        "SHORT_BINBYTES", "BINBYTES", "SHORT_BINUNICODE", "BINUNICODE",
    }
)  # fmt: skip
CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
EMPTY: dict[str, Callable[[], Any]] = {"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple}
TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
SILENT = frozenset({"PROTO", "FRAME"})


def read_plain_pickle(content: bytes, place: str) -> Any:
    """Return the value in a pickle of protocol 2 to 4; arrays come as ``Array``, eight-bit strings as Latin-1 text.

    ``place`` names the file in errors. BadInput when the pickle is damaged or asks for anything but dictionaries,
    lists, tuples, text, bytes, numbers and arrays of unsigned bytes. No part of it is ever imported or called.
    """
    machine = Machine()
    try:
        for code, argument, _ in pickletools.genops(content):
            machine.step(code.name, argument)
        return machine.result()
    except Refusal as refusal:
        raise BadInput(
            f"{place} asks for {refusal}; a data file holds only lists, numbers, text and arrays of bytes: "
            "nothing of it was run, get the file again from its authors"
        ) from None
    except (ValueError, IndexError, KeyError, TypeError, UnicodeError, OverflowError) as error:
        raise BadInput(
            f"{place} is damaged: {str(error).splitlines()[0] if str(error) else type(error).__name__}; "
            "get the file again from its authors"
        ) from None


class Machine:
    """The stack, the marks and the memo of the pickle machine, with the instructions that only build data."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def result(self) -> Any:
        """Return what is left at the end."""
        if len(self.stack) != 1 or self.stack[0] is MARK:
            raise ValueError(f"{len(self.stack)} values are left on the stack")
        return self.stack[0]

    def step(self, code: str, argument: Any) -> None:
        """Carry out one instruction; ``Refusal`` when it does more than build data."""
        if code in PUSHED:
            self.stack.append(argument)
        elif code in CONSTANTS:
            self.stack.append(CONSTANTS[code])
        elif code in EMPTY:
            self.stack.append(EMPTY[code]())
        elif code in TUPLES:
            self.stack.append(tuple(self.pop() for _ in range(TUPLES[code]))[::-1])
        elif code in ("BINPUT", "LONG_BINPUT"):
            self.memo[argument] = self.stack[-1]
        elif code == "MEMOIZE":
            self.memo[len(self.memo)] = self.stack[-1]
        elif code in ("BINGET", "LONG_BINGET"):
            self.stack.append(self.memo[argument])
        elif code == "STOP" or code in SILENT:
            pass
        else:
            self.combine(code, argument)

    def combine(self, code: str, argument: Any) -> None:
        """Carry out an instruction that works on values already on the stack."""
        match code:
            case "MARK":
                self.stack.append(MARK)
            case "TUPLE":
                self.stack.append(tuple(self.to_mark()))
            case "APPEND":
                value = self.pop()
                self.top(list).append(value)
            case "APPENDS":
                values = self.to_mark()
                self.top(list).extend(values)
            case "SETITEM":
                value, key = self.pop(), self.pop()
                self.top(dict).update([(checked_key(key), value)])
            case "SETITEMS":
                pairs = self.to_mark()
                self.top(dict).update(zip(map(checked_key, pairs[0::2]), pairs[1::2], strict=True))
            case "GLOBAL":
                self.stack.append(known(*argument.split(" ", 1)))
            case "STACK_GLOBAL":
                name, module = self.pop(), self.pop()
                self.stack.append(known(module, name))
            case "REDUCE":
                arguments, function = self.pop(), self.pop()
                self.stack.append(described(function, arguments))
            case "BUILD":
                state = self.pop()
                fill(self.stack[-1], state)
            case _:
                raise Refusal(f"the instruction {code}")

    def pop(self) -> Any:
        """Take the value on top of the stack."""
        value = self.stack.pop()
        if value is MARK:
            raise ValueError("a value is missing")
        return value

    def top(self, kind: type) -> Any:
        """Return the value on top of the stack, which must be a ``kind`` and stays there."""
        if type(self.stack[-1]) is not kind:
            raise ValueError(f"a {kind.__name__} is missing")
        return self.stack[-1]

    def to_mark(self) -> list[Any]:
        """Take all values above the last mark, and the mark."""
        at = len(self.stack) - 1
        while self.stack[at] is not MARK:
            at -= 1
            if at < 0:
                raise ValueError("a mark is missing")
        values = self.stack[at + 1 :]
        del self.stack[at:]
        return values


def checked_key(key: object) -> str | bytes:
    """Return ``key`` if it is text or bytes: nothing else is a key here, and a nested key could exhaust the stack."""
    if not isinstance(key, str | bytes):
        raise Refusal(f"a dictionary with a {type(key).__name__} as a key")
    return key


def known(module: object, name: object) -> Name:
    """Return the name if it is one with which NumPy writes arrays."""
    if not isinstance(module, str) or not isinstance(name, str):
        raise ValueError("a name is not text")
    found = Name(f"{module}.{name}")
    if found not in KNOWN:
        raise Refusal(repr(found.path))
    return found


def described(function: object, arguments: object) -> Any:
    """Return what a call with which NumPy writes arrays describes; no function is called."""
    if function in RECONSTRUCT and isinstance(arguments, tuple) and arguments[:1] == (ARRAY_CLASS,):
        return Array()
    if function == DTYPE and isinstance(arguments, tuple) and arguments[:1] in (("u1",), ("|u1",)):
        return BYTE
    match arguments:
        case (str(text), "latin1") if function == ENCODE:
            return text.encode("latin-1")
    raise Refusal(f"a call of {getattr(function, 'path', type(function).__name__)!r} that is no array of bytes")


def fill(value: object, state: object) -> None:
    """Give an ``Array`` its shape and content; for the dtype of bytes there is nothing to set."""
    if value is BYTE:
        return
    match state:
        case (1, tuple(shape), dtype, columns_first, content) if isinstance(value, Array) and dtype is BYTE:
            # NumPy under Python 2 wrote the content as an eight-bit string
            data = content.encode("latin-1") if isinstance(content, str) else content
            if not all(type(size) is int and size >= 0 for size in shape):
                raise ValueError("the shape of an array is not made of whole numbers")
            if not isinstance(data, bytes) or len(data) != math.prod(shape):
                raise ValueError(f"an array of shape {shape} does not hold {math.prod(shape)} bytes")
            value.shape, value.content, value.columns_first = shape, data, bool(columns_first)
        case _:
            raise Refusal(f"the state of a {type(value).__name__} that is no array of bytes")
