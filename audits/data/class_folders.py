"""One folder a class: which files of it are images, in which order. Both are those of torchvision's ImageFolder.

Ids are places in this order, and people write their lists of members by ImageFolder. So hidden files and folders count,
links are followed, and nested folders come in the order of their whole paths, as there.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from audits.errors import BadInput, how_many

SUFFIXES = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")
PART = re.compile(
    r"(?P<before>.*[ _-])?(?:(?P<train>train|training)|(?P<val>val|valid|validation|dev)|(?P<test>test|testing|eval))"
    r"(?:[ _-]?(?:set|split|images|data|\d{4}))?"
)
"""Names of folders that hold a part of a data set, in lower case; what stands ``before`` is the same for all parts."""
DOMAIN = re.compile(r"(?<=[a-z])[AB]\Z")
"""What CycleGAN's folders have behind their part: trainA, trainB, testA, testB; a class called testa has not."""
NAMED = 6  # endings that a note names


@dataclass(frozen=True)
class ClassFolders:
    """The images in the class folders of a root.

    ``files``: below the root, with slashes, class by class; ``labels``: of each the place of its class in ``classes``.
    ``others``: how many files in the class folders have another ending, by ending; ``beside``: images that are in no
    class folder; ``empty``: how many hidden folders hold no image, and are no classes.
    """

    classes: tuple[str, ...]
    files: tuple[str, ...]
    labels: tuple[int, ...]
    others: Counter[str]
    beside: int
    empty: int

    def notes(self) -> Iterator[str]:
        """Yield what is left out, and what a reader may not expect to count."""
        if self.others:
            yield f"files with other endings are left out, as by torchvision's ImageFolder: {counted(self.others)}"
        if self.beside:
            are = "is" if self.beside == 1 else "are"
            yield (
                f"{how_many(self.beside, 'image')} that {are} in no class folder {are} left out, as by torchvision's "
                "ImageFolder"
            )
        if shared := self.shared():
            yield (
                f"all class folders ({shown(self.classes)}) hold sub-folders of the same names ({shown(shared)}); if "
                "these are the classes, name one of the folders above them"
            )
        if self.empty:
            yield (
                "1 hidden folder without an image is no class"
                if self.empty == 1
                else f"{self.empty} hidden folders without an image are no classes"
            )
        if hidden := sum(any(part.startswith(".") for part in file.split("/")) for file in self.files):
            yield (
                f"{hidden} of {len(self.files)} images {'is' if hidden == 1 else 'are'} hidden, or in hidden folders; "
                f"{'it counts' if hidden == 1 else 'they count'}, as for torchvision's ImageFolder"
            )

    def shared(self) -> list[str]:
        """Return the names of the sub-folders of every class, if there are two or more and no image is beside them."""
        inside: list[set[str]] = [set() for _ in self.classes]
        for file, label in zip(self.files, self.labels, strict=True):
            parts = file.split("/")
            if len(parts) < 3:
                return []
            inside[label].add(parts[1])
        common = sorted(set.intersection(*inside))
        return common if len(common) > 1 else []


def read_class_folders(root: Path) -> ClassFolders:
    """Return the images in the sub-folders of ``root``; nothing is opened.

    BadInput when there are fewer than two classes, or one without an image, when the folders are parts of a data set,
    such as train and val, when links lead in a circle, and when a folder cannot be read.
    """
    names = class_names(root)
    refuse_parts(root, names)
    classes: list[str] = []
    files: list[str] = []
    labels: list[int] = []
    others: Counter[str] = Counter()
    for name in names:
        found = list(files_below(root, name))
        images = [file for file in found if is_image(file)]
        if not images and not name.startswith("."):
            raise BadInput(f"class folder {root / name} holds no image ({', '.join(SUFFIXES)})")
        if images:
            files += images
            labels += [len(classes)] * len(images)
            classes.append(name)
            others.update(ending(file) for file in found if not is_image(file))
    if len(classes) < 2:
        raise too_few(root, classes)
    beside = sum(is_image(entry.name) and not entry.is_dir() for entry in root.iterdir())
    return ClassFolders(tuple(classes), tuple(files), tuple(labels), others, beside, len(names) - len(classes))


def class_names(root: Path) -> list[str]:
    """Return the names of the sub-folders of ``root``, hidden ones too, in order."""
    return sorted(entry.name for entry in root.iterdir() if entry.is_dir())


def too_few(root: Path, classes: Sequence[str]) -> BadInput:
    """Return the error of a root with fewer than two classes."""
    return BadInput(
        f"{root} holds {how_many(len(classes), 'class folder')}; at least two are needed, each full of images"
    )


def files_below(root: Path, name: str) -> Iterator[str]:
    """Yield all files in the folder ``name`` of ``root`` and below it, links followed, as paths below ``root``.

    Folders come in the order of their whole paths, and the files of each in order of name. BadInput for links in a
    circle and for a folder that cannot be read.
    """

    def refuse(error: OSError) -> None:
        raise BadInput(f"folder {error.filename} cannot be read ({error.strerror}); make it readable, or remove it")

    found = []
    for parent, folders, files in os.walk(root / name, followlinks=True, onerror=refuse):
        for folder in folders:
            refuse_circle(root, Path(parent, folder))
        found.append((parent, files))
    for parent, files in sorted(found):
        below = Path(parent).relative_to(root).as_posix()
        yield from (f"{below}/{file}" for file in sorted(files))


def refuse_circle(root: Path, folder: Path) -> None:
    """Refuse a link to one of the folders around it: following it would never end."""
    if not folder.is_symlink():
        return
    target = os.path.realpath(folder)
    for around in folder.parents:
        if os.path.realpath(around) == target:
            raise BadInput(f"{folder} is a link to {target}, which holds it: a circle without end; remove the link")
        if around == root:
            return


def is_image(file: str) -> bool:
    """Say whether a file counts as an image: by its ending alone, in whatever case."""
    return file.lower().endswith(SUFFIXES)


def ending(file: str) -> str:
    """Return the ending of a file's name in lower case: up to ten letters and digits; else "no ending"."""
    found = re.search(r"\.\w{1,10}\Z", file)
    return found[0].lower() if found else "no ending"


def counted(others: Counter[str]) -> str:
    """Return the most frequent endings with their numbers, in words."""
    ordered = sorted(others.items(), key=lambda item: (-item[1], item[0]))
    named = [f"{name} {count}" for name, count in ordered[:NAMED]]
    rest = sum(count for _, count in ordered[NAMED:])
    return ", ".join([*named, *([f"others {rest}"] if rest else [])])


def shown(names: Sequence[str]) -> str:
    """Return some names on one line."""
    return ", ".join(map(repr, names[:NAMED])) + (", …" if len(names) > NAMED else "")


def refuse_parts(root: Path, names: Sequence[str]) -> None:
    """Refuse folders that are the parts of a data set, and no classes.

    They are if train and val, say, hold folders of one name or are half of all folders, and if nothing but parts is
    there, with folders in them. A class that is called train, among others, stays a class.
    """
    seen = [name for name in names if not name.startswith(".")]
    found = {name: match for name in seen if (match := PART.fullmatch(DOMAIN.sub("", name).lower()))}
    kinds = {name: match.lastgroup for name, match in found.items()}
    if len({match["before"] for match in found.values()}) != 1:
        return
    inside = [name for part in kinds for name in class_names(root / part) if not name.startswith(".")]
    if len(set(kinds.values())) > 1:
        refused = 2 * len(kinds) >= len(seen) or len(set(inside)) < len(inside)
    else:
        refused = len(kinds) == len(seen) and bool(inside)
    if not refused:
        return
    nested = next((name for name in kinds if class_names(root / name)), None)
    way_out = "a folder that holds one folder of images per class" if nested is None else "one of them: "
    if nested is None and all(DOMAIN.search(name) for name in kinds):
        way_out += f", such as {next(iter(kinds))[:-1]} with the folders A and B in it"
    raise BadInput(
        f"{root} holds {' and '.join(kinds)}: parts of a data set, not classes; give {way_out}"
        f"{'' if nested is None else f'folder:{root / nested}'}"
    )
