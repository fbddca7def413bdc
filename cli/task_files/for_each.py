"""`for_each` in tasks.yaml: one entry that stands for many tasks. Rules without I/O.

`for_each` is a list of mappings, one a task, or a mapping of lists, whose cross product is meant:

    for_each: [{carrier: AA, rate: 10}, {carrier: UA, rate: 20}]
    for_each: {carrier: [AA, UA], year: [2012, 2013]}

`${each.NAME}` anywhere in the entry is replaced: a text that is nothing else becomes the value with its type,
within a longer text the value is written out. Other `${...}` are left to whom they are for (Spark, the
worker); `$${each.NAME}` is the text `${each.NAME}` itself.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, Final

from definition.reading import path_to
from protocol.messages.tasks import Problem

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

FOR_EACH: Final = "for_each"
MOST: Final = 100_000
"""Tasks that one entry may stand for; a cross product is soon larger than anybody meant."""
_PLACEHOLDER: Final = re.compile(r"\$?\$\{(?:each\.(?P<each>[^{}]*)|(?P<bare>\w+))\}")
_NAME: Final = re.compile(r"[A-Za-z_]\w*\Z")


@dataclass(frozen=True, slots=True)
class Expanded:
    """One task's entry as `for_each` makes it; `place` says from where in the file it is."""

    place: str
    entry: Any


@dataclass(frozen=True, slots=True)
class _Row:
    """What one task's placeholders stand for; `place` is where that is written."""

    place: str
    values: Mapping[str, Any]


def expand(entry: Any, place: str) -> tuple[list[Expanded], list[Problem]]:
    """The tasks that `entry`, at `place`, stands for, and all that is wrong with its `for_each`."""
    if not isinstance(entry, dict) or FOR_EACH not in entry:
        return [Expanded(place, entry)], []
    rows, problems = _rows(entry[FOR_EACH], f"{place}.{FOR_EACH}")
    template = {key: value for key, value in entry.items() if key != FOR_EACH}
    names = {name for row in rows for name in row.values}
    expanded = []
    for row in rows:
        filler = _Filler(row, names)
        expanded.append(Expanded(f"{place} ({row.place})", filler.fill(template, place)))
        problems += filler.problems
    return expanded, list(dict.fromkeys(problems))


def _rows(for_each: Any, place: str) -> tuple[list[_Row], list[Problem]]:
    """One row a task; none if there is a problem."""
    if isinstance(for_each, list):
        problems = list(_list_problems(for_each, place))
        return [] if problems else [
            _Row(f"{FOR_EACH}[{at}]", row) for at, row in enumerate(for_each)
        ], problems
    if isinstance(for_each, dict):
        problems = list(_product_problems(for_each, place))
        return [] if problems else _product(for_each), problems
    return [], [Problem(place, "must be a list of mappings, or a mapping of lists")]


def _list_problems(for_each: Sequence[Any], place: str) -> Iterator[Problem]:
    for at, row in enumerate(for_each):
        if isinstance(row, dict):
            yield from _name_problems(row, f"{place}[{at}]")
        else:
            yield Problem(f"{place}[{at}]", "must be a mapping; plain values go as for_each: {NAME: [...]}")


def _product_problems(for_each: Mapping[Any, Any], place: str) -> Iterator[Problem]:
    yield from _name_problems(for_each, place)
    if not for_each:
        yield Problem(place, "is empty; name a list, or leave it out")
    for name, value in for_each.items():
        if not isinstance(value, list):
            yield Problem(path_to(place, str(name)), "must be a list, of which every value gives tasks")
    number = prod(len(value) for value in for_each.values() if isinstance(value, list))
    if number > MOST:
        yield Problem(place, f"stands for {number:,} tasks, the most is {MOST:,}")


def _name_problems(row: Mapping[Any, Any], place: str) -> Iterator[Problem]:
    for name in row:
        if not isinstance(name, str) or not _NAME.match(name):
            yield Problem(path_to(place, str(name)), "is no name: letters, digits and _, no digit first")


def _product(for_each: Mapping[str, Sequence[Any]]) -> list[_Row]:
    rows = (dict(zip(for_each, values, strict=True)) for values in product(*for_each.values()))
    return [_Row(" ".join(f"{name}={written(value)}" for name, value in row.items()), row) for row in rows]


class _Filler:
    """Puts one row's values into a template, and finds what cannot be filled.

    `names` are those of all rows: a placeholder that only this row lacks is told apart from a misspelt one.
    """

    def __init__(self, row: _Row, names: Collection[str]) -> None:
        self.problems: list[Problem] = []
        self._row = row
        self._names = names

    def fill(self, value: Any, place: str) -> Any:
        """`value`, at `place`, with its placeholders replaced; keys may have some, too."""
        if isinstance(value, str):
            whole = _PLACEHOLDER.fullmatch(value)
            is_value = whole and whole["each"] is not None and not value.startswith("$$")
            return self._value(whole["each"], place) if whole and is_value else self._text(value, place)
        if isinstance(value, list):
            return [self.fill(item, f"{place}[{at}]") for at, item in enumerate(value)]
        return self._mapping(value, place) if isinstance(value, dict) else value

    def _mapping(self, value: Mapping[Any, Any], place: str) -> dict[Any, Any]:
        filled: dict[Any, Any] = {}
        for key, item in value.items():
            inner = path_to(place, str(key))
            name = self._text(key, inner) if isinstance(key, str) else key
            if name in filled:
                self._problem(inner, f"becomes {name!r}, which is there already")
            filled[name] = self.fill(item, inner)
        return filled

    def _text(self, text: str, place: str) -> str:
        return _PLACEHOLDER.sub(lambda match: self._put(match, place), text)

    def _put(self, match: re.Match[str], place: str) -> str:
        if (name := match["each"]) is None:
            return self._bare(match, place)
        if match[0].startswith("$$"):
            return match[0][1:]
        value = self._value(name, place)
        if isinstance(value, dict | list):
            self._problem(place, f"{match[0]} is no plain value, it cannot stand within a text")
        return written(value)

    def _bare(self, match: re.Match[str], place: str) -> str:
        """`${NAME}` is Spark's, unless the name is one of ours: then it was probably meant to be filled."""
        name = match["bare"]
        if name not in self._names:
            return match[0]
        if match[0].startswith("$$"):
            return match[0][1:]
        self._problem(place, f"write ${{each.{name}}}, or $${{{name}}} for the text ${{{name}}} itself")
        return match[0]

    def _value(self, name: str, place: str) -> Any:
        if name not in self._row.values:
            self._problem(place, self._unknown(name))
        return self._row.values.get(name)

    def _unknown(self, name: str) -> str:
        if name in self._names:
            return f"${{each.{name}}} is not in {self._row.place}"
        alike = get_close_matches(name, sorted(self._names), n=1)
        known = ", ".join(f"${{each.{each}}}" for each in sorted(self._names)) or "none"
        hint = f"did you mean ${{each.{alike[0]}}}?" if alike else f"known are {known}"
        return f"${{each.{name}}} is not in {FOR_EACH}; {hint}"

    def _problem(self, place: str, message: str) -> None:
        self.problems.append(Problem(place, message))


def written(value: Any) -> str:
    """A value as it stands in a text: true and null as in YAML and JSON."""
    return value if isinstance(value, str) else json.dumps(value)
