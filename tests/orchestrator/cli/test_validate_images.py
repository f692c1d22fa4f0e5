"""``orch validate`` on a folder of images: headers are read, and few images decoded; names of points cost none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from audits.data import images
from audits.data.catalogue import describe
from orchestrator.cli.main import main
from orchestrator.engine.data import LOOKED_AT, looked_at
from orchestrator.engine.plan.points import points_in
from orchestrator.engine.plan.sections import Data


@pytest.fixture
def folder(tmp_path: Path) -> str:
    drawn = np.random.default_rng(1)
    for name in ("a", "b"):
        (tmp_path / "set" / name).mkdir(parents=True)
        for number in range(100):
            pixels = drawn.integers(0, 256, (8, 8), np.uint8)
            Image.fromarray(pixels).save(tmp_path / "set" / name / f"{number:03}.png")
    return f"folder:{tmp_path / 'set'}"


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    found: list[Path] = []

    def counted(file: Path, *more: Any, plain: Callable[..., Any] = images.decode) -> Any:
        found.append(file)
        return plain(file, *more)

    monkeypatch.setattr(images, "decode", counted)
    return found


@pytest.mark.long
def test_a_plan_is_checked_without_decoding_all_images(
    tmp_path: Path, folder: str, decoded: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    plan = str(tmp_path / "my.yaml")
    assert main(["new", plan, "--kind", "gnq", "--size", "seconds", "--data", folder]) == 0
    assert main(["validate", plan]) == 0
    assert 0 < len(decoded) <= LOOKED_AT < 200
    assert f"{len(decoded)} of 200 images were decoded" in capsys.readouterr().out
    whole = decoded[-1].read_bytes()
    decoded[-1].write_bytes(whole[: len(whole) - 40])
    assert main(["validate", plan]) == 2
    assert decoded[-1].name in capsys.readouterr().err


def test_of_a_set_that_is_decoded_whole_nothing_is_left_to_say(
    tmp_path: Path, folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "b"):
        for number in range(8, 100):
            (tmp_path / "set" / name / f"{number:03}.png").unlink()
    assert looked_at(folder, None).notes == ()


def test_names_of_points_are_had_without_decoding(folder: str, decoded: list[Path]) -> None:
    names = points_in(Data(name=folder), describe(folder)).names()
    assert names is not None and len(names) == 200 and names[0] == "a/000.png"
    assert not decoded
