"""A given target: its files, their digests, and points that are on one side only."""

import hashlib
import os

import numpy as np
import pytest

from audits.errors import BadInput
from orchestrator.engine.data import data_of
from orchestrator.engine.given import IDS
from orchestrator.engine.given_files import STAGE, digest_of, with_digests
from orchestrator.engine.plan.target import Target
from orchestrator.engine.store.faults import Unsigned
from orchestrator.engine.store.payloads import pack_arrays
from orchestrator.engine.store.store import Store
from orchestrator.engine.store.trust import Trust
from orchestrator.kinds import KINDS, open_design, plan_from


def test_a_file_is_known_by_its_sha256(tmp_path):
    file = tmp_path / "weights.pt"
    file.write_bytes(b"first")
    first = hashlib.sha256(b"first").hexdigest()
    assert digest_of(str(file)) == digest_of(str(file), first) == first
    file.write_bytes(b"another")
    with pytest.raises(BadInput, match=r"is not the file that the plan was written for.*remove target\.sha256"):
        digest_of(str(file), first)
    stamp = file.stat().st_mtime_ns
    known = digest_of(str(file))
    (tmp_path / "new").write_bytes(b"ANOTHER")
    os.utime(tmp_path / "new", ns=(stamp, stamp))
    (tmp_path / "new").replace(file)
    assert digest_of(str(file)) != known, "of the same length and time"
    file.unlink()
    assert digest_of(str(file), first) == first
    with pytest.raises(BadInput, match="cannot be read: No such file"):
        digest_of(str(file))


def test_a_folder_of_weights_is_known_by_them_whatever_lies_beside_them_and_a_record_by_its_answers(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    given = tmp_path / "given"
    given.mkdir()
    (given / "endpoint").symlink_to(elsewhere)  # what is read behind a link counts as well
    for name in ("model.safetensors", "eval.parquet", "endpoint/endpoint.json", "endpoint/batch.parquet"):
        (given / name).write_bytes(name.encode())

    def digests():
        return digest_of(str(given)), digest_of(str(given), record=True)

    before = digests()
    (given / "eval.parquet").write_bytes(b"of neither")
    assert digests() == before
    (elsewhere / "batch.parquet").write_bytes(b"other answers")
    weights, record = digests()
    assert weights == before[0] and record != before[1]
    (given / "model.safetensors").write_bytes(b"other weights")
    assert digests()[0] != weights and digests()[1] == record
    target = {"weights": str(given), "members": "even", "sha256": {str(given): weights}}
    with pytest.raises(BadInput, match="is not the file that the plan was written for"):
        with_digests(plan_from({"audit": {"kind": "mia"}, "target": target}))


def test_rules_are_no_files():
    target = Target(weights="m.pt", members="0:500", non_members="others.txt")
    assert target.files == ("m.pt", "others.txt")
    assert Target(weights="m.pt", members="even").files == ("m.pt",)


def test_unsigned_points_are_read_from_their_files_and_refused_without_them(tmp_path, monkeypatch):
    """Or --rebuild could never make them anew: they are read before it comes to that."""
    monkeypatch.setitem(KINDS, "toy", "tests.cases.given_kind:KIND")
    (tmp_path / "weights.pt").write_bytes(b"weights")
    members = tmp_path / "members.txt"
    members.write_text("1\n2\n3\n")
    target = {"weights": str(tmp_path / "weights.pt"), "members": str(members), "non_members": "60:80"}
    model = {"name": "mlp", "settings": {"hidden": [8]}}
    raw = {"audit": {"kind": "toy"}, "data": {"name": "digits"}, "model": model, "target": target}
    plan, data = with_digests(plan_from(raw)), data_of("digits", None, None)

    def points(key):
        trusting = Store(str(tmp_path / "store"), trust=Trust(key=key))
        return open_design(plan, trusting, data, "cpu").given_points["members"].tolist()

    job = open_design(plan, None, data, "cpu").given_job("points")
    planted = {IDS: pack_arrays({"members": np.array([7]), "non_members": np.array([8])})}
    Store(str(tmp_path / "store"), trust=Trust()).put(STAGE, job.key, job.document, planted)
    assert points(b"") == [7], "nobody looks without a key"
    assert points(b"k" * 32) == [1, 2, 3]
    members.unlink()
    with pytest.raises(Unsigned, match="--rebuild"):
        points(b"k" * 32)
