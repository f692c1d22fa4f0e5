"""Every sentence in which a run is told stands in tests/golden/texts: who changes one sees it in the diff.

``make golden`` writes the files. Other tests hold of a sentence what they check; it renews these too.
"""

from __future__ import annotations

from difflib import unified_diff
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.cases.kept import finished
from tests.cases.told import told

TEXTS = Path(__file__).parents[1] / "golden" / "texts"
MADE_WITH = ("torch", "numpy", "scipy", "scikit-learn")
"""Of other versions the numbers may be others, and with them which sentences are said."""


@pytest.mark.parametrize("name", ["apollo", "tmia", "gnq", "mia", "gnq, given"])
def test_a_run_is_told_in_the_sentences_of_its_golden_file(
    name: str, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    file = TEXTS / f"{name.replace(', ', '-')}.txt"
    head = ", ".join(f"{each} {version(each).partition('+')[0]}" for each in MADE_WITH)
    now = f"{head}\n{told(finished(name), tmp_path)}"
    if pytestconfig.pluginmanager.has_plugin("hearing"):  # of make golden
        file.parent.mkdir(exist_ok=True)
        file.write_text(now, "utf-8")
        return
    was = file.read_text("utf-8")
    if was.partition("\n")[0] != head:
        pytest.skip(f"the sentences were written down with {was.partition(chr(10))[0]}; here are others")
    changed = "\n".join(unified_diff(was.splitlines(), now.splitlines(), lineterm="", n=0))
    assert not changed, f"{changed}\nIf that is what it should say: make golden"
