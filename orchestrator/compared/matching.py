"""Pairs of attacks, one of each side, that are compared, and those that are compared with nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from audits.errors import BadInput, did_you_mean
from orchestrator.compared.sides import Said, Side

LEVELS = ("method", "setting", "attack")
MOST_NAMED = 6
OWN = "models of the plan’s own"
Match = tuple[str, str]
"""A name of the first side and the name of the other that it is compared with."""


@dataclass(frozen=True)
class Matched:
    """What is compared; ``named``: what is under two names, or of two kinds under one; ``left_out``: what is not."""

    pairs: tuple[tuple[Said, Said], ...]
    named: tuple[str, ...]
    left_out: tuple[str, ...]


def parse_matches(texts: Iterable[str]) -> list[Match]:
    """Return the names in ``--match A=B``; raises BadInput for other texts."""
    found: list[Match] = []
    for text in texts:
        own, equals, other = text.partition("=")
        if not (own and equals and other):
            raise BadInput(f"--match {text!r} is not of the form A=B: a name of the first run and one of the other")
        found.append((own, other))
    return found


def fitting(pairs: Sequence[tuple[Side, Side]], matches: Sequence[Match]) -> list[list[Match]]:
    """Return the matches of each pair of sides: those whose two names it has.

    Raises BadInput for a match that fits no pair, and for a name that is matched twice in one.
    """
    found: list[list[Match]] = [[] for _ in pairs]
    for match in matches:
        refused: list[BadInput] = []
        for own, (first, second) in zip(found, pairs, strict=True):
            try:
                _level(first, second, match)
            except BadInput as error:
                refused.append(error)
                continue
            for side, place in ((first, 0), (second, 1)):
                if match[place] in [each[place] for each in own]:
                    raise BadInput(f"--match names {match[place]!r} of {side.label} twice; match it once")
            own.append(match)
        if len(refused) == len(pairs):
            raise refused[0]
    return found


def matched(first: Side, second: Side, matches: Sequence[Match] = ()) -> Matched:
    """Return what is compared between two sides, setting by setting.

    Names given by ``matches`` come first, then equal names; then methods that the plans describe alike, and the one
    method of each side that is no control, whatever they are called; so single settings. Raises BadInput where nothing
    is in both, for names in ``matches`` that no setting, method or attack has, and for settings of different modes.
    """
    given = {level: dict[str, str]() for level in LEVELS}
    for match in matches:
        given[_level(first, second, match)][match[0]] = match[1]
    settings = _by_name(first.settings, second.settings, given["setting"])
    if len(first.settings) == len(second.settings) == 1:
        settings = {first.settings[0]: second.settings[0]}
    methods = _methods(first, second, given["method"])
    attacks = _by_name(first.attacks, second.attacks, given["attack"])
    if not settings:
        raise BadInput(
            f"{first.label} and {second.label} have no setting in common: {', '.join(first.settings)}; "
            f"{', '.join(second.settings)}"
        )
    others = {(each.setting, each.method, each.attack): each for each in second.said}
    pairs = []
    for each in first.said:
        place = settings.get(each.setting), methods.get(each.method), attacks.get(each.attack)
        if place in others:
            pairs.append((each, others[place]))
    if not pairs:
        names = [", ".join(dict.fromkeys(each.name for each in side.said)) for side in (first, second)]
        raise BadInput(f"{first.label} and {second.label} have no attack in common: {names[0]}; {names[1]}")
    for one, other in pairs:
        _check_modes(first, second, one.setting, other.setting)
    methods = {one.method: other.method for one, other in pairs}
    used = dict.fromkeys(
        (getattr(one, level), getattr(other, level))
        for level in ("setting", "method", "attack")
        for one, other in pairs
    )
    return Matched(
        tuple(pairs),
        (
            *(f"{one} ({first.label}) with {other} ({second.label})" for one, other in used if one != other),
            *_unlike(first, second, methods),
            *_of_others(first, second, methods),
        ),
        (
            *left_out(first, second, _not_among(first, [one for one, _ in pairs])),
            *left_out(second, first, _not_among(second, [other for _, other in pairs])),
        ),
    )


def _unlike(first: Side, second: Side, methods: Mapping[str, str]) -> list[str]:
    """Return which names are compared with themselves though the plans give them to different methods."""
    found = []
    for name in (one for one, other in methods.items() if one == other):
        own, others = (side.made[name]["method"] if name in side.made else "" for side in (first, second))
        if own and others and own != others:
            found.append(f"{name} ({own} in {first.label}) with {name} ({others} in {second.label})")
    return found


def _of_others(first: Side, second: Side, methods: Mapping[str, str]) -> list[str]:
    """Return which methods are compared though their scores are of models of other kinds: given ones, and trained."""
    found = []
    for names in methods.items():
        whose = [side.given.get(name, OWN) for side, name in zip((first, second), names, strict=True)]
        if whose[0] != whose[1]:
            parts = [
                f"{name} ({what} in {side.label})" if name else f"{what} ({side.label})"
                for name, what, side in zip(names, whose, (first, second), strict=True)
            ]
            found.append(" with ".join(parts))
    return found


def _check_modes(first: Side, second: Side, one: str, other: str) -> None:
    """Raise BadInput for settings of two modes."""
    own, others = first.modes.get(one), second.modes.get(other)
    if own and others and own != others:
        # Settings of one run are called by the labels of their sides.
        names = [f"setting {name or side.label} of {side.folder}" for side, name in ((first, one), (second, other))]
        raise BadInput(f"{names[0]} is of mode {own}, {names[1]} of mode {others}: they ask different questions")


def _level(first: Side, second: Side, match: Match) -> str:
    """Return what a match names: methods, settings or attacks."""
    names = {
        "method": (first.methods, second.methods),
        "setting": (first.settings, second.settings),
        "attack": (first.attacks, second.attacks),
    }
    for level in LEVELS:
        if match[0] in names[level][0] and match[1] in names[level][1]:
            return level
    known = [list(dict.fromkeys(name for level in LEVELS for name in names[level][place] if name)) for place in (0, 1)]
    place = 0 if match[0] not in known[0] else 1
    name, side = match[place], (first, second)[place]
    if name in known[place]:
        raise BadInput(f"--match {match[0]}={match[1]}: match a method with a method, or an attack with an attack")
    raise BadInput(
        f"--match {match[0]}={match[1]}: {side.label} has no {name!r}{did_you_mean(name, known[place])}; it has "
        f"{', '.join(known[place])}"
    )


def _by_name(own: Sequence[str], other: Sequence[str], given: Mapping[str, str]) -> dict[str, str]:
    """Return the names of one side with those of the other: the given ones, and equal ones of the rest."""
    taken = {*given.values()}
    return {**given, **{name: name for name in own if name not in given and name in other and name not in taken}}


def _methods(first: Side, second: Side, given: Mapping[str, str]) -> dict[str, str]:
    """Return the methods that are compared."""
    found = _by_name(first.methods, second.methods, given)
    left = [name for name in first.methods if name not in found]
    others = [name for name in second.methods if name not in {*found.values()}]
    alike = [
        (one, other)
        for one in left
        for other in others
        if (what := _what(first, one)) is not None and what == _what(second, other)
    ]
    for one, other in alike:
        if sum(one == pair[0] or other == pair[1] for pair in alike) == 1:
            found[one] = other
    if len(rest := _rest(first, found)) == len(other_rest := _rest(second, found.values())) == 1:
        found[rest[0]] = other_rest[0]
    return found


def _what(side: Side, name: str) -> Any:
    """Return what a method of a side is, whatever it is called: of a control the method alone; None if not known."""
    made = side.made.get(name)
    return made["method"] if made and name in side.controls else made


def _rest(side: Side, used: Iterable[str]) -> list[str]:
    """Return the methods of a side that are not matched yet and are no controls."""
    taken = {*used, *side.controls}
    return [name for name in side.methods if name not in taken]


def left_out(side: Side, other: Side, names: Sequence[str]) -> list[str]:
    """Return the sentence on what of a side is not compared with another, none where all is."""
    if not names:
        return []
    return [f"In {side.label}, not compared with {other.label}: {few(names)}."]


def few(names: Iterable[str]) -> str:
    """Return the first of the names, and how many more there are."""
    every = list(names)
    more = f" and {len(every) - MOST_NAMED} more" if len(every) > MOST_NAMED else ""
    return ", ".join(every[:MOST_NAMED]) + more


def _not_among(side: Side, used: Sequence[Said]) -> list[str]:
    """Return what of a side is not compared: whole settings, then whole methods, then single attacks."""
    compared = {each.place for each in used}
    settings, methods = {each.setting for each in used}, {each.method for each in used}
    found = {
        f"setting {each.setting}"
        if each.setting not in settings
        else f"method {each.method}"
        if each.method not in methods
        else f"attack {'/'.join(filter(None, each.place))}": None
        for each in side.said
        if each.place not in compared
    }
    return list(found)
