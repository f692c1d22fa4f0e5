"""Work in chunks gets smaller where memory does not suffice, and is the same work."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from audits import memory
from audits.memory import Forms, by_chunks, out_of_memory, with_less
from audits.queries.oracles import label_oracle, posterior_oracle
from audits.training.loop import logits

FAILURES = (
    MemoryError(),
    torch.OutOfMemoryError("CUDA out of memory"),
    RuntimeError("[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory"),
)


def test_chunks_are_fixed_where_memory_suffices() -> None:
    seen = by_chunks(lambda rows: (rows.start, rows.stop), 10, 4)
    assert seen == [(0, 4), (4, 8), (8, 10)]
    assert by_chunks(lambda rows: (rows.start, rows.stop), 0, 4) == [(0, 0)]


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: type(failure).__name__)
def test_a_chunk_that_finds_no_memory_is_halved_and_no_row_is_lost(failure: Exception) -> None:
    def work(rows: slice) -> list[int]:
        if rows.stop - rows.start > 3:
            raise failure
        return list(range(rows.start, rows.stop))

    parts = by_chunks(work, 20, 16)
    assert [row for part in parts for row in part] == list(range(20))
    assert max(map(len, parts)) == 2
    sizes: list[int] = []

    def less(chunk: int) -> int:
        sizes.append(chunk)
        if chunk > 3:
            raise failure
        return chunk

    assert with_less(less, 16) == 2 and sizes == [16, 8, 4, 2]


def test_other_failures_and_single_rows_are_not_tried_again() -> None:
    calls: list[slice] = []

    def refuse(rows: slice) -> None:
        calls.append(rows)
        raise MemoryError

    with pytest.raises(MemoryError):
        by_chunks(refuse, 4, 4)
    assert [rows.stop for rows in calls] == [4, 2, 1]
    with pytest.raises(ValueError, match="no"):
        with_less(lambda chunk: int("no"), 4)
    assert not out_of_memory(RuntimeError("shapes do not match"))


def test_a_single_row_that_finds_no_memory_is_tried_with_fewer_models() -> None:
    forms, asked = Forms(8, 2, 1), list[tuple[int, int]]()

    def work(rows: slice) -> int:
        asked.append((rows.stop - rows.start, forms.now))
        if (rows.stop - rows.start) * forms.now > 1:
            raise MemoryError
        return rows.start

    assert by_chunks(work, 4, 4, forms.fewer) == [0, 1, 2, 3]
    assert asked[:5] == [(4, 8), (2, 8), (1, 8), (1, 2), (1, 1)]
    with pytest.raises(MemoryError):
        by_chunks(lambda rows: work(slice(0, 2)), 1, 1, forms.fewer)


class Narrow(nn.Module):
    """A model that fits only so many inputs at once."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.inner = nn.Linear(5, 3)
        self.most = most

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return logits, or fail."""
        if len(x) > self.most:
            raise torch.OutOfMemoryError("CUDA out of memory")
        found: torch.Tensor = self.inner(x)
        return found


def test_oracles_answer_alike_with_less_memory() -> None:
    x = torch.randn(100, 5, generator=torch.Generator().manual_seed(0))
    wide = Narrow(1000)
    narrow = Narrow(7)
    narrow.load_state_dict(wide.state_dict())
    ids = np.arange(100)
    oracles = [label_oracle(model, chunk=64) for model in (wide, narrow)]
    labels = [oracle.ask(x[:, None], ids) for oracle in oracles]
    assert torch.equal(labels[0], labels[1])
    assert all((oracle.counter.queries_spent(ids) == 1).all() for oracle in oracles)
    posteriors = [posterior_oracle(model, chunk=64).ask(x, ids) for model in (wide, narrow)]
    torch.testing.assert_close(posteriors[0], posteriors[1])
    torch.testing.assert_close(logits(wide, x), logits(narrow, x))


GIB = 2**30


@pytest.mark.parametrize(
    ("said", "folder", "files"),
    [
        ("0::/a.slice/b\n", "a.slice", {"memory.max": GIB, "memory.current": GIB // 4}),
        ("0::/docker/1a\n", "", {"memory.max": GIB, "memory.current": GIB // 4}),
        ("4:memory:/x\n0::/\n", "memory/x", {"memory.limit_in_bytes": GIB, "memory.usage_in_bytes": GIB // 4}),
        ("4:cpu,memory:/docker/1a\n", "memory", {"memory.limit_in_bytes": GIB, "memory.usage_in_bytes": GIB // 4}),
    ],
)
def test_the_limit_of_a_container_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, folder: str, files: dict[str, int]
) -> None:
    groups, mine, table = tmp_path / "groups", tmp_path / "mine", tmp_path / "meminfo"
    (groups / folder).mkdir(parents=True)
    mine.write_text(said)
    limit, used = files.values()
    (groups / folder / "memory.stat").write_text(f"anon 5\ninactive_file {used // 2}\n")
    for name, value in files.items():
        (groups / folder / name).write_text(f"{value}\n")
    found = memory.limits(groups, mine)
    assert found == [(limit, used // 2)]
    monkeypatch.setattr(memory, "limits", lambda: found)
    table.write_text("MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\n")
    assert memory.of_machine() == GIB and memory.free(table) == limit - used // 2


def test_without_a_limit_the_machine_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "mine").write_text("0::/\n")
    found = memory.limits(tmp_path, tmp_path / "mine")
    assert found == [] == memory.limits(tmp_path, tmp_path / "absent")
    monkeypatch.setattr(memory, "limits", lambda: found)
    assert memory.of_machine() > GIB
    (tmp_path / "meminfo").write_text("MemAvailable: 4194304 kB\n")
    assert memory.free(tmp_path / "meminfo") == 4 * GIB and memory.free(tmp_path / "absent") is None
