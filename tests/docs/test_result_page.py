"""The reference names every field of a result, and the page on the code only files that are there."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.docs.commands import BLOCK, ROOT

RESULT = (ROOT / "docs" / "reference" / "result.md").read_text()
ARCHITECTURE = (ROOT / "docs" / "explanation" / "architecture.md").read_text()
SCHEMAS = sorted((ROOT / "orchestrator" / "schemas").glob("*.json"))
HEADS = {"apollo": "Apollo: ", "tmia": "TMIA: ", "gnq": "GNQ: ", "mia": "MIA: ", "gnq-target": "GNQ of a given model: "}
HEADS |= {"score": "Scores from elsewhere: ", "compare": "Comparisons: "}
COMMON = "Fields of every result.json"
TOPS = (".ci", "actors", "audits", "benchmarks", "docs", "examples", "orchestrator", "tests", "tune_spaces")
ROOMS = (".", "orchestrator", "orchestrator/gnq", "orchestrator/engine", "audits", "tune_spaces")

WORD = re.compile(r"\w+")
PLACE = re.compile(r"`((?:\.ci|[a-z_*]+)/[\w*./-]*|[\w/]+\.(?:py|yaml|j2))`")


def part(text: str, heading: str) -> str:
    """Return the parts of a page, with what is below them, whose headings begin so."""
    found = [piece for piece in re.split(r"^## ", text, flags=re.MULTILINE) if piece.startswith(heading)]
    assert found, heading
    return "\n".join(found)


def fields(schema: Any) -> set[str]:
    """Return the names of all fields that a JSON Schema knows, at any depth."""
    if isinstance(schema, list):
        return {name for each in schema for name in fields(each)}
    if not isinstance(schema, dict):
        return set()
    own = set(schema["properties"]) if isinstance(schema.get("properties"), dict) else set()
    return own.union(*map(fields, schema.values()))


def named(text: str) -> set[str]:
    """Return the words in code and in the first cells of tables."""
    cells = [line.split("|")[1] for line in text.splitlines() if line.startswith("|")]
    return {word for piece in (*re.findall(r"`([^`]+)`", text), *cells) for word in WORD.findall(piece)}


def told(field: str, words: set[str]) -> bool:
    """Say whether a field is named, or is the end of an interval of one that is, or a corrected p-value of one."""
    stem = re.sub(r"(_t)?_(low|high)$|_holm$", "", field)
    return field in words or stem in words


@pytest.mark.parametrize("file", SCHEMAS, ids=lambda file: file.stem)
def test_every_field_is_in_the_reference(file: Path) -> None:
    text = "\n".join(part(RESULT, head) for head in (HEADS[file.stem], COMMON, "The gate"))
    words = named(text)
    assert not sorted(field for field in fields(json.loads(file.read_text())) if not told(field, words))


def test_a_field_that_is_left_out_is_noticed() -> None:
    assert told("auc_low", {"auc"}) and told("p_holm", {"p"})
    assert not told("fpr_exact_low", {"fpr"}) and not told("auc", named("the auc of `tpr`"))


def places(text: str) -> set[str]:
    """Return the files and folders that a page names in code."""
    return set(PLACE.findall(BLOCK.sub("", text)))


def found(place: str) -> bool:
    """Say whether a file of the repository has the name, which may leave out the folders before it."""
    name = place.rstrip("/")
    return any(True for folder in ("", *(f"{top}/**/" for top in TOPS)) for _ in ROOT.glob(f"{folder}{name}"))


@pytest.mark.parametrize("place", sorted(places(ARCHITECTURE)))
def test_files_that_the_architecture_names_are_there(place: str) -> None:
    assert found(place), place


def test_the_drawing_of_the_folders_is_true() -> None:
    """Folders of the first block are there, and the packages below the four rooms are all in it."""
    drawing = BLOCK.findall(ARCHITECTURE)[0][1]
    names = set(re.findall(r"([\w.]+)(?:/|\b)", drawing))
    for room in ("orchestrator", "audits"):
        packages = {path.parent.name for path in (ROOT / room).glob("*/__init__.py")}
        assert packages <= names, packages - names
    for name in re.findall(r"(?:^|\s)(\w+)/", drawing):
        assert any((ROOT / room / name).is_dir() for room in ROOMS), name


def test_a_file_that_is_not_there_is_noticed() -> None:
    assert places("`audits/nowhere.py` and `engine/`, not `audit.fdr`") == {"audits/nowhere.py", "engine/"}
    assert not found("audits/nowhere.py")
