"""What is wrong with a list of rules, field by field."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from protocol.alarm_kinds import TRAITS, About, AlarmKind
from protocol.messages.alarms import MOST_WILDCARDS, AlarmRule

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

MOST_PROBLEMS: Final = 1000
"""Of a list of rules; nobody reads more."""
RECEIVERS_NAMED: Final = 10
_USUAL: Final = AlarmRule(name="usual", kind=AlarmKind.FAILED)


ABOUT: Final = {About.WORKER: "workers", About.MANAGER: "managers", About.DATABASE: "the database"}


def problems_of(
    rules: Sequence[AlarmRule], receivers: Collection[str] | None = None
) -> Iterator[tuple[str, str]]:
    """Each fault as its place, `rules[2].threshold`, and what it is; the first `MOST_PROBLEMS` of them.

    Args:
        rules: in the order in which they count.
        receivers: the names of those that can be told; None if that is not known, then any will do.
    """
    known = None if receivers is None else _Receivers(receivers)
    return islice(_problems(rules, known), MOST_PROBLEMS)


class _Receivers:
    """The names of those that can be told, and a word for them, which any number of problems may have."""

    def __init__(self, names: Collection[str]) -> None:
        self.names = frozenset(names)
        rest = f" and {len(self.names) - RECEIVERS_NAMED} more" if len(self.names) > RECEIVERS_NAMED else ""
        self.told = (", ".join(sorted(self.names)[:RECEIVERS_NAMED]) or "none") + rest


def _problems(rules: Sequence[AlarmRule], receivers: _Receivers | None) -> Iterator[tuple[str, str]]:
    seen: dict[str, int] = {}
    for place, rule in enumerate(rules):
        at = f"rules[{place}]"
        if rule.name in seen:
            yield f"{at}.name", f"{rule.name} is the name of rules[{seen[rule.name]}] already"
        seen.setdefault(rule.name, place)
        for field, fault in (
            *_of_thresholds(rule),
            *_of_times(rule),
            *_of_subjects(rule),
            *_of_patterns(rule),
            *_of_receivers(rule, receivers),
        ):
            yield f"{at}.{field}", fault


def _of_thresholds(rule: AlarmRule) -> Iterator[tuple[str, str]]:
    unit = TRAITS[rule.kind].unit
    if unit is None:
        if rule.threshold is not None or rule.clear_threshold is not None:
            yield "threshold", f"a rule of kind {rule.kind.value} has none: it holds or it does not"
        return
    if rule.threshold is None:
        yield "threshold", f"a rule of kind {rule.kind.value} needs one, in {unit}"
    elif rule.clear_threshold is not None and rule.clear_threshold > rule.threshold:
        yield "clear_threshold", f"{rule.clear_threshold:g} is above the threshold, {rule.threshold:g}"


def _of_times(rule: AlarmRule) -> Iterator[tuple[str, str]]:
    """What its kind does not look at, and would be thought to count."""
    traits = TRAITS[rule.kind]
    if not traits.window and rule.window_ms != _USUAL.window_ms:
        yield "window_ms", f"a rule of kind {rule.kind.value} does not look back"
    if not traits.floor and rule.floor_ms != _USUAL.floor_ms:
        yield "floor_ms", f"a rule of kind {rule.kind.value} has none: only those of kind silent"


def _of_subjects(rule: AlarmRule) -> Iterator[tuple[str, str]]:
    traits = TRAITS[rule.kind]
    if traits.about is About.TASK:
        return
    fault = f"a rule of kind {rule.kind.value} is about {ABOUT[traits.about]}"
    if traits.of_herd and rule.groups != "*":
        yield "groups", f"{fault}, of no group"
    if rule.tasks != "*":
        yield "tasks", f"{fault}, not tasks"
    if rule.labels:
        yield "labels", f"{fault}, not tasks"


def _of_patterns(rule: AlarmRule) -> Iterator[tuple[str, str]]:
    labels = {f"labels.{name}": glob for name, glob in rule.labels.items()}
    for field, glob in {"groups": rule.groups, "tasks": rule.tasks, **labels}.items():
        if fault := pattern_fault(glob):
            yield field, fault


def pattern_fault(glob: str) -> str | None:
    """What is wrong with a pattern, if anything."""
    wild = glob.count("*") + glob.count("?")
    return f"has {wild} times * or ?, and may have {MOST_WILDCARDS}" if wild > MOST_WILDCARDS else None


def _of_receivers(rule: AlarmRule, receivers: _Receivers | None) -> Iterator[tuple[str, str]]:
    for place, name in enumerate(rule.receivers):
        if receivers is not None and name not in receivers.names:
            yield (
                f"receivers[{place}]",
                f"there is no receiver {name}; those of this manager: {receivers.told}",
            )
