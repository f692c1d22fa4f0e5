"""ONNX graphs as far as they say, without being run, what they take: read off the protocol buffers of their file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

Value = int | memoryview
VARINT, EIGHT, BYTES, FOUR = 0, 1, 2, 5
"""Wire types of protocol buffers."""
GRAPH = 7
"""The field of a model (onnx.proto)."""
NODE, INITIALIZER, INPUT, OUTPUT = 1, 5, 11, 12
"""Fields of a graph."""
KEEP = ("Cast", "Expand", "Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze")
"""Operators that hand on the numbers of their first input; a cast only where it is to integers that have them."""
WHOLE = (6, 7)
"""ONNX's numbers of int32 and int64."""


@dataclass
class Node:
    """One operator: its inputs and outputs by name, and its integer attributes."""

    kind: str = ""
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    table: tuple[int, ...] | None = None
    """The shape of a constant's tensor."""


@dataclass
class Graph:
    """``nodes`` in the order in which they run; ``tables``: shapes of stored tensors; inputs and outputs by name."""

    nodes: list[Node] = field(default_factory=list)
    tables: dict[str, tuple[int, ...]] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)


def table_sizes(data: bytes, output: str | None) -> list[int]:
    """Return the sizes of the tables in which a model looks its inputs up, on the way to ``output`` (None: to any).

    A look-up counts where the graph alone shows it: a Gather on a stored tensor by numbers that are the model's own
    input, cast and reshaped at most. Raises ValueError for what is no ONNX model.
    """
    graph = read_graph(data)
    taken = [name for name in graph.inputs if name not in graph.tables]
    same, needed, found = set(taken), needed_for(graph, output), []
    for node in graph.nodes:
        if node.kind == "Gather" and len(node.inputs) == 2 and node.inputs[1] in same:
            shape, axis = graph.tables.get(node.inputs[0]), node.numbers.get("axis", 0)
            if shape and needed.intersection(node.outputs) and -len(shape) <= axis < len(shape):
                found.append(shape[axis])
        elif keeps(node) and same.issuperset(node.inputs[:1]):
            same.update(node.outputs)
    return found


def keeps(node: Node) -> bool:
    """Say whether a node hands on the numbers of its first input."""
    return node.kind in KEEP and bool(node.inputs) and (node.kind != "Cast" or node.numbers.get("to") in WHOLE)


def needed_for(graph: Graph, output: str | None) -> set[str]:
    """Return the names of all values on which ``output`` (None: any) depends; others are not computed."""
    needed = set(graph.outputs) if output is None else {output}
    for node in reversed(graph.nodes):
        if needed.intersection(node.outputs):
            needed.update(node.inputs)
    return needed


def read_graph(data: bytes) -> Graph:
    """Return the graph of an ONNX model; raises ValueError for what is none."""
    graph = Graph()
    for number, model in fields(memoryview(data)):
        if number != GRAPH:
            continue
        for part, value in fields(_bytes(model)):
            if part == NODE:
                node = read_node(_bytes(value))
                graph.nodes.append(node)
                if node.table is not None:
                    graph.tables[node.outputs[0]] = node.table
            elif part == INITIALIZER:
                name, shape = read_tensor(_bytes(value))
                graph.tables[name] = shape
            elif part in (INPUT, OUTPUT):
                named = graph.inputs if part == INPUT else graph.outputs
                named += [_text(text) for each, text in fields(_bytes(value)) if each == 1]
    return graph


def read_node(data: memoryview) -> Node:
    """Return a NodeProto: input 1, output 2, op_type 4, attribute 5."""
    node = Node()
    for number, value in fields(data):
        if number == 1:
            node.inputs.append(_text(value))
        elif number == 2:
            node.outputs.append(_text(value))
        elif number == 4:
            node.kind = _text(value)
        elif number == 5:
            read_attribute(_bytes(value), node)
    return node


def read_attribute(data: memoryview, node: Node) -> None:
    """Note an AttributeProto (name 1, i 3, t 5) in its node."""
    name = ""
    for number, value in fields(data):
        if number == 1:
            name = _text(value)
        elif number == 3 and isinstance(value, int):
            node.numbers[name] = value - (1 << 64) if value >> 63 else value
        elif number == 5 and node.kind in ("Constant", ""):
            node.table = read_tensor(_bytes(value))[1]


def read_tensor(data: memoryview) -> tuple[str, tuple[int, ...]]:
    """Return name (8) and shape (dims, 1, one by one or packed) of a TensorProto; its numbers are passed over."""
    name, shape = "", list[int]()
    for number, value in fields(data):
        if number == 8:
            name = _text(value)
        elif number == 1:
            shape += [value] if isinstance(value, int) else varints(value)
    return name, tuple(shape)


def fields(data: memoryview) -> Iterator[tuple[int, Value]]:
    """Yield number and value of each field of a message: an integer, or bytes; raises ValueError where it is none."""
    place = 0
    while place < len(data):
        tag, place = varint(data, place)
        kind = tag & 7
        if kind == VARINT:
            value, place = varint(data, place)
            yield tag >> 3, value
            continue
        if kind == BYTES:
            size, place = varint(data, place)
        elif kind in (EIGHT, FOUR):
            size = 8 if kind == EIGHT else 4
        else:
            raise ValueError("no protocol buffer")
        if place + size > len(data):
            raise ValueError("a protocol buffer that is cut off")
        yield tag >> 3, data[place : place + size]
        place += size


def varints(data: memoryview) -> list[int]:
    """Return integers that are packed."""
    found, place = [], 0
    while place < len(data):
        value, place = varint(data, place)
        found.append(value)
    return found


def varint(data: memoryview, place: int) -> tuple[int, int]:
    """Return the integer at ``place`` and the place behind it."""
    value = 0
    for shift in range(0, 70, 7):
        if place >= len(data):
            break
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
    raise ValueError("no protocol buffer")


def _bytes(value: Value) -> memoryview:
    if isinstance(value, int):
        raise ValueError("no ONNX model")
    return value


def _text(value: Value) -> str:
    return bytes(_bytes(value)).decode("utf-8", "replace")
