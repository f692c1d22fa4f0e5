"""Results of a job on the way to who submitted it: lines of text at the end of the job's log.

The log reaches everybody who may follow the job, over the one port that is open to them. Each line has a mark and a
number, because other processes may print between two of them.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import re
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from audits.data.tar_files import BadTar, members_of, reading
from audits.writing import make_folder, write_whole

MARK = "orch-result"
LINE_BYTES = 6000
MOST_BYTES = 64 * 2**20  # of files before compression; a log is held in memory by Ray's job server
FIRST = ("result.json", "plan.yaml", "report.html", "presets.yaml", "orch.log")
NEVER = ("mlflow.db", "mlartifacts")  # the tracking database of the node
LINE = re.compile(rf"^{MARK} (\d+) ([A-Za-z0-9+/=]+)$", re.MULTILINE)
END = re.compile(rf"^{MARK} end (\d+) ([0-9a-f]{{64}})$", re.MULTILINE)


class DamagedHandover(RuntimeError):
    """The log ends before the results do, or something is wrong with them (one line)."""


def chosen(folder: Path, most: int = MOST_BYTES) -> tuple[list[Path], list[Path]]:
    """Return the files of a run that are handed over, and those that are too large: the last in order of importance."""
    files = [
        path for path in folder.rglob("*") if path.is_file() and not set(NEVER) & set(path.relative_to(folder).parts)
    ]
    order = {name: place for place, name in enumerate(FIRST)}
    files.sort(key=lambda path: (order.get(path.name, len(FIRST)), path.suffix == ".parquet", str(path)))
    taken: list[Path] = []
    left: list[Path] = []
    for path in files:
        size = path.stat().st_size
        (taken if size <= most else left).append(path)
        most -= size if size <= most else 0
    return taken, left


def packed(folder: Path, files: list[Path]) -> Iterator[str]:
    """Yield the lines that carry ``files`` of ``folder``."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for path in files:
            archive.add(path, arcname=path.relative_to(folder).as_posix())
    data = buffer.getvalue()
    starts = range(0, len(data), LINE_BYTES)
    for number, start in enumerate(starts):
        yield f"{MARK} {number} {base64.b64encode(data[start : start + LINE_BYTES]).decode()}"
    yield f"{MARK} end {len(starts)} {hashlib.sha256(data).hexdigest()}"


def unpack(log: str, folder: Path) -> list[str] | None:
    """Write the files that a log carries into ``folder`` and return their names; None if it carries none.

    Raises DamagedHandover unless all of them are there, whole. Names that lead out of the folder are refused, and all
    files if together they are larger than what is sent.
    """
    end = END.search(log)
    if end is None:
        return None
    pieces = {int(number): piece for number, piece in LINE.findall(log)}
    if pieces.keys() != set(range(int(end[1]))):
        raise DamagedHandover(f"the job's log lacks {int(end[1]) - len(pieces)} of {end[1]} lines of its results")
    data = b"".join(base64.b64decode(pieces[number]) for number in range(len(pieces)))
    if hashlib.sha256(data).hexdigest() != end[2]:
        raise DamagedHandover("the results in the job's log are not what was written there")
    try:
        plain = io.BytesIO(_uncompressed(data))
        with reading(), tarfile.open(fileobj=plain, mode="r:") as archive:
            members = list(members_of(archive))
            if sum(member.size for member in members) > MOST_BYTES:  # a sparse file is larger than what is there
                raise _too_large()
            make_folder(folder, private=True)
            for member in members:
                _take(archive, member, folder)
            return [member.name for member in members]
    except (BadTar, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DamagedHandover(f"the results in the job's log are no archive ({error})") from None


def _uncompressed(data: bytes) -> bytes:
    """Return what was compressed; refuse more than files of ``MOST_BYTES`` and what stands about them in an archive."""
    most = 2 * MOST_BYTES
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
        found = file.read(most + 1)
    if len(found) > most:
        raise _too_large()
    return found


def _too_large() -> DamagedHandover:
    return DamagedHandover(
        f"the results in the job's log unpack to more than {MOST_BYTES / 2**20:g} MiB, more than is ever sent; none of "
        "them was written"
    )


def _take(archive: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    """Write a file of the archive; ``packed`` puts in nothing but files, by names within the folder."""
    content, parts = archive.extractfile(member) if member.isreg() else None, PurePosixPath(member.name).parts
    if content is None or not parts or member.name.startswith("/") or ".." in parts:
        raise DamagedHandover(f"the results in the job's log hold {member.name!r}, which is no file of a run")
    for depth in range(1, len(parts)):
        make_folder(folder.joinpath(*parts[:depth]), below=folder, private=True)
    write_whole(folder.joinpath(*parts), content.read(), below=folder, private=True)


def is_carried(line: str) -> bool:
    """Say whether a line of a log carries results, and so is nothing to show."""
    return line.startswith(f"{MARK} ")
