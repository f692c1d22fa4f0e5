"""A given target: its files, their digests, and points that are on one side only."""

import hashlib

import pytest

from audits.errors import BadInput
from orchestrator.engine.given_files import digest_of
from orchestrator.engine.plan.target import Target


def test_a_file_is_known_by_its_sha256(tmp_path):
    file = tmp_path / "weights.pt"
    file.write_bytes(b"first")
    first = hashlib.sha256(b"first").hexdigest()
    assert digest_of(str(file)) == digest_of(str(file), first) == first
    file.write_bytes(b"another")
    with pytest.raises(BadInput, match=r"is not the file that the plan was written for.*remove target\.sha256"):
        digest_of(str(file), first)
    file.unlink()
    assert digest_of(str(file), first) == first
    with pytest.raises(BadInput, match="cannot be read: No such file"):
        digest_of(str(file))


def test_rules_are_no_files():
    target = Target(weights="m.pt", members="0:500", non_members="others.txt")
    assert target.files == ("m.pt", "others.txt")
    assert Target(weights="m.pt", members="even").files == ("m.pt",)
