"""`alarms.yaml`: all rules of alarms of a herd in one file, `rules` with a list of them (docs/alarms.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from cli.task_files.differences import Difference, differences
from cli.task_files.reader import TaskFileError, parse
from protocol.messages.alarms import MOST_RULES, AlarmRule, without_defaults
from protocol.messages.base import faulty_place
from protocol.messages.tasks import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


class _Document(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    rules: list[Any]


def read_alarm_file(path: Path) -> tuple[AlarmRule, ...]:
    """The rules in a file, as far as their shape goes; what they mean is for the manager to judge.

    Raises:
        TaskFileError: it cannot be read; every problem with its place.
    """
    read = parse(path)
    try:
        document = msgspec.convert(read, _Document)
    except msgspec.ValidationError as error:
        place, fault = faulty_place(error)
        raise TaskFileError([Problem(place.removeprefix("."), f"{fault}, in {path}")]) from None
    if len(document.rules) > MOST_RULES:
        raise TaskFileError([Problem("rules", f"{len(document.rules)} rules; there may be {MOST_RULES}")])
    rules = tuple(map(_rule, range(len(document.rules)), document.rules))
    if problems := [each for each in rules if isinstance(each, Problem)]:
        raise TaskFileError(problems)
    return tuple(each for each in rules if isinstance(each, AlarmRule))


def _rule(place: int, value: Any) -> AlarmRule | Problem:
    try:
        return msgspec.convert(value, AlarmRule)
    except msgspec.ValidationError as error:
        field, fault = faulty_place(error)
        return Problem(f"rules[{place}]{field}", fault)


def changes(before: Sequence[AlarmRule], after: Sequence[AlarmRule]) -> Iterator[Difference]:
    """Rule by rule, by name, what differs; the order of those that stay, too, since it counts."""
    old = {rule.name: rule for rule in before}
    new = {rule.name: rule for rule in after}
    for name in {**old, **new}:
        yield from differences(_plain(old.get(name)), _plain(new.get(name)), name)
    stay_before = [rule.name for rule in before if rule.name in new]
    stay_after = [rule.name for rule in after if rule.name in old]
    if stay_before != stay_after:
        yield Difference("order", stay_before, stay_after)


def _plain(rule: AlarmRule | None) -> dict[str, Any]:
    return {} if rule is None else without_defaults(rule)
