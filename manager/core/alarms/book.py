"""The rules and silences of the herd, and which of them are about what."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from manager.core.alarms.globs import fits
from protocol.alarm_kinds import TRAITS, About

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from protocol.messages.alarms import AlarmRule, Silence


MOST_FOUND: Final = 10_000
"""Rules with groups whose silences are known; a manager may have more."""


@dataclass(frozen=True, slots=True, eq=False)
class AlarmBook:
    """All there is, as of one moment; `is_known` is False before anything was read.

    `by_name` has the rules that are switched on; a rule that is switched off still takes the place of those
    before it. `unread` are the names of rules that a newer version has made: what fires by these goes on.
    """

    rules: tuple[AlarmRule, ...] = ()
    silences: tuple[Silence, ...] = ()
    unread: frozenset[str] = frozenset()
    is_known: bool = True
    by_name: dict[str, AlarmRule] = field(init=False, default_factory=dict)
    _silencing: dict[tuple[str, str], tuple[Silence, ...]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.by_name.update({rule.name: rule for rule in self.rules})

    def of_group(self, group: str) -> tuple[AlarmRule, ...]:
        """The rules that are about anything in that group."""
        return tuple(
            rule for rule in self.rules if not TRAITS[rule.kind].of_herd and fits(rule.groups, group)
        )

    def is_silenced(self, rule: str, group: str, task: str | None, wall_ms: int) -> bool:
        """Whether nobody is told of that rule's alarm now.

        `task` is None of what is not a task's, and `group` empty of what is of no group.
        """
        return any(
            wall_ms < silence.ends_at_ms
            and (silence.tasks == "*" if task is None else fits(silence.tasks, task))
            for silence in self._silences_of(rule, group)
        )

    def _silences_of(self, rule: str, group: str) -> tuple[Silence, ...]:
        """Found out once: each of a hundred thousand alarms of a rule may be compared with all of them."""
        found = self._silencing.get((rule, group))
        if found is None:
            if len(self._silencing) >= MOST_FOUND:
                self._silencing.clear()
            found = self._silencing[rule, group] = tuple(
                each for each in self.silences if fits(each.rules, rule) and fits(each.groups, group)
            )
        return found


UNREAD: Final = AlarmBook(is_known=False)
"""What rings is not known, so nothing does, and nothing is resolved."""


def for_task(rules: Iterable[AlarmRule], task: str, labels: Mapping[str, str]) -> tuple[AlarmRule, ...]:
    """Those of `rules`, all of one group, that count for a task: the last of each kind and severity."""
    last = {
        (rule.kind, rule.severity): rule
        for rule in rules
        if TRAITS[rule.kind].about is About.TASK and fits(rule.tasks, task) and _labelled(rule, labels)
    }
    return tuple(rule for rule in last.values() if rule.enabled)


def for_workers(rules: Iterable[AlarmRule]) -> tuple[AlarmRule, ...]:
    """Those of `rules`, all of one group, that count for its workers."""
    return _last(rule for rule in rules if TRAITS[rule.kind].about is About.WORKER)


def for_herd(rules: Iterable[AlarmRule]) -> tuple[AlarmRule, ...]:
    """Those of `rules` that count for managers and the database."""
    return _last(rule for rule in rules if TRAITS[rule.kind].of_herd)


def _last(rules: Iterable[AlarmRule]) -> tuple[AlarmRule, ...]:
    last = {(rule.kind, rule.severity): rule for rule in rules}
    return tuple(rule for rule in last.values() if rule.enabled)


def _labelled(rule: AlarmRule, labels: Mapping[str, str]) -> bool:
    return all(name in labels and fits(glob, labels[name]) for name, glob in rule.labels.items())
