"""The benchmark of DP-SGD times forms that give the same weights; how fast anything is, no test asks."""

from __future__ import annotations

import pytest

from benchmarks import private


@pytest.mark.long
@pytest.mark.parametrize("models", [("mlp",), pytest.param(private.MODELS, marks=pytest.mark.long)])
def test_a_record_has_a_row_for_each_model_and_form(models, capsys, monkeypatch):
    monkeypatch.setattr(private, "MODELS", models)
    private.main(["--quick", "--markdown"])
    shown = capsys.readouterr().out
    assert shown.startswith("<!-- begin: private cpu -->")
    assert "`python -m benchmarks.private --quick`" in shown
    assert all(f"| {name}, {form} |" in shown for name in models for form in private.FORMS)


def test_engines_that_differ_are_not_timed(monkeypatch):
    monkeypatch.setattr(private, "apart", lambda name: 1e-3)
    with pytest.raises(SystemExit, match=r"mlp: the two engines differ by 1\.0e-03"):
        private.main(["--quick"])
