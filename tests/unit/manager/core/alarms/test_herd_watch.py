"""Alarms of managers and of the database, as the manager that looks finds them."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import msgspec
import pytest

from manager.core.alarms.book import UNREAD, AlarmBook
from manager.core.alarms.checking import problems_of
from manager.core.alarms.herd_conditions import DATABASE_CONDITIONS, MANAGER_CONDITIONS
from protocol.alarm_kinds import TRAITS, About, AlarmKind
from protocol.default_alarm_rules import DEFAULT_RULES
from protocol.messages.alarms import Silence
from tests.unit.manager.core.alarms.herd import HerdDouble
from tests.unit.manager.core.alarms.looks import MINUTE, WALL, rule

GONE = rule(AlarmKind.MANAGER_GONE, name="gone", for_ms=MINUTE)
FAILING = rule(AlarmKind.DATABASE_FAILING, name="failing", threshold=20, window_ms=MINUTE)
FIRES, RESOLVES = ("fires", "gone", "c"), ("resolves", "gone", "c")


def herd(*rules: Any, silences: tuple[Silence, ...] = ()) -> HerdDouble:
    """Three managers that have been there for two minutes."""
    made = HerdDouble(AlarmBook(rules, silences), "a", "b", "c")
    made.steps(120)
    assert made.told == Counter()
    return made


def test_every_kind_of_the_herd_has_a_condition() -> None:
    """And none of another kind is there."""
    assert MANAGER_CONDITIONS.keys() == {k for k, traits in TRAITS.items() if traits.about is About.MANAGER}
    assert DATABASE_CONDITIONS.keys() == {k for k, traits in TRAITS.items() if traits.about is About.DATABASE}


def test_a_manager_that_is_gone_rings_when_its_patience_is_over_and_when_it_is_back() -> None:
    """`for_ms` counts from its last word."""
    managers = herd(GONE)
    dead = managers.kill("c")
    managers.steps(55)
    assert managers.told == Counter()
    managers.steps(5)
    assert managers.told == Counter([FIRES])
    managers.steps(600)
    managers.start(dead)
    managers.steps(60)
    assert managers.told == Counter([FIRES, RESOLVES])


@pytest.mark.parametrize("after_s", [10, 30, 59, 61, 120])
def test_whoever_looks_may_die_at_any_time(after_s: int) -> None:
    """The next one tells what was not told, and nothing twice: what fires is stored, and since when."""
    managers = herd(GONE)
    managers.kill("c")
    managers.steps(after_s)
    managers.kill("a")
    managers.steps(600)
    assert managers.told == Counter([FIRES, ("fires", "gone", "a")])


def test_what_could_not_be_stored_is_found_again() -> None:
    """Its patience does not begin anew: another manager, or a transaction that failed, was in between."""
    managers = herd(FAILING_PATIENTLY)
    for _ in range(12):
        managers.managers["b"].transact(5, failed=5)
        managers.step()
    managers.managers["b"].transact(5, failed=5)
    managers.step(store=False)
    assert managers.told == Counter()
    managers.managers["b"].transact(5, failed=5)
    managers.step()
    assert managers.told == Counter([("fires", "failing", None)])


FAILING_PATIENTLY = msgspec.structs.replace(FAILING, for_ms=50_000)


def test_after_an_outage_nobody_is_missed_who_comes_back() -> None:
    """All have been silent for ten minutes, as the database was away; one is back half a minute later."""
    managers = herd(GONE)
    managers.now += 10 * MINUTE
    late = managers.kill("c")
    managers.steps(30)
    managers.start(late)
    managers.steps(300)
    assert managers.told == Counter()


def test_after_an_outage_who_does_not_come_back_is_missed() -> None:
    """A minute after the one that looks is back itself."""
    managers = herd(GONE)
    managers.now += 10 * MINUTE
    managers.kill("c")
    managers.steps(60)
    assert managers.told == Counter()
    managers.steps(10)
    assert managers.told == Counter([FIRES])


def test_who_leaves_while_its_alarm_fires_ends_it() -> None:
    """Nobody waits for it to get better."""
    managers = herd(rule(AlarmKind.MANAGER_MEMORY, name="memory", threshold=80))
    heavy = managers.managers["b"]
    heavy.figures = msgspec.structs.replace(heavy.figures, memory_percent=90.0)
    managers.steps(10)
    managers.leave("b")
    managers.steps(10)
    assert managers.told == Counter([("fires", "memory", "b"), ("resolves", "memory", "b")])


def test_what_a_silent_manager_told_of_itself_says_nothing() -> None:
    """Its last figures were bad: that alarm neither ends nor begins while nobody knows."""
    managers = herd(rule(AlarmKind.MANAGER_LOOP_LAG, name="lag", threshold=1, for_ms=MINUTE))
    late = managers.managers["c"]
    late.figures = msgspec.structs.replace(late.figures, loop_lag_s=5.0)
    managers.steps(10)
    managers.kill("c")
    managers.steps(600)
    assert managers.told == Counter()


def test_the_database_fails_for_the_manager_for_which_it_is_worst() -> None:
    """One alarm for all, of no manager; its end comes when the window is past."""
    managers = herd(FAILING)
    for _ in range(6):
        managers.managers["b"].transact(5, failed=4)
        managers.step()
    assert managers.told == Counter([("fires", "failing", None)])
    managers.steps(120)
    assert managers.told == Counter([("fires", "failing", None), ("resolves", "failing", None)])


def test_what_a_silent_manager_has_seen_of_the_database_says_nothing() -> None:
    """It failed for it a moment before it was gone; for the others it does not."""
    managers = herd(FAILING_PATIENTLY)
    managers.managers["b"].transact(50, failed=50)
    managers.step()
    managers.kill("b")
    managers.steps(300)
    assert managers.told == Counter()


def test_what_another_manager_has_stored_meanwhile_counts() -> None:
    """It has told, while the database was away, what is pending here; and ended what is about to end here."""
    managers = herd(FAILING_PATIENTLY)
    for _ in range(20):
        managers.managers["b"].transact(5, failed=5)
        managers.step()
    assert managers.told == Counter([("fires", "failing", None)])
    key, row = managers.firing.popitem()
    for _ in range(8):
        managers.managers["b"].transact(5, failed=5)
        managers.step()
    managers.firing[key] = row
    for _ in range(8):
        managers.managers["b"].transact(5, failed=5)
        managers.step()
    assert managers.told == Counter([("fires", "failing", None)])
    managers.book = AlarmBook((msgspec.structs.replace(FAILING_PATIENTLY, clear_after_ms=MINUTE),))
    managers.steps(70)
    managers.firing.clear()
    managers.steps(120)
    assert managers.told == Counter([("fires", "failing", None)])


def test_whoever_takes_over_ends_nothing_before_it_has_seen_a_whole_window() -> None:
    """It begins to count anew, and all is well so far; what holds may begin in a part of a window."""
    managers = herd(FAILING)
    for _ in range(6):
        managers.managers["b"].transact(5, failed=5)
        managers.step()
    managers.leave("a")
    managers.steps(55)
    assert managers.told == Counter([("fires", "failing", None)])
    managers.steps(10)
    assert managers.told == Counter([("fires", "failing", None), ("resolves", "failing", None)])


def test_a_slow_database_rings_by_its_average() -> None:
    """One slow transaction among many is none."""
    managers = herd(rule(AlarmKind.DATABASE_SLOW, name="slow", threshold=1, window_ms=MINUTE))
    managers.managers["a"].transact(1, seconds_each=5.0)
    managers.step()
    assert managers.told == Counter()
    for _ in range(6):
        managers.managers["a"].transact(5, seconds_each=3.0)
        managers.step()
    assert managers.told == Counter([("fires", "slow", None)])


def test_a_silence_counts_for_those_of_no_group_where_it_is_about_all_groups() -> None:
    """One about some groups says nothing of managers."""
    common: dict[str, Any] = {
        "id": "s",
        "ends_at_ms": WALL + 60 * MINUTE,
        "reason": "r",
        "by": "ann",
        "created_at_ms": 0,
    }
    for groups, told in (("*", 0), ("g*", 1)):
        managers = herd(GONE, silences=(Silence(**common, groups=groups),))
        managers.kill("c")
        managers.steps(300)
        assert managers.told[FIRES] == told
        assert len(managers.firing) == 1


def test_nothing_changes_while_the_rules_are_not_known() -> None:
    """What fires is not resolved by that."""
    managers = herd(GONE)
    managers.kill("c")
    managers.steps(90)
    known, managers.book = managers.book, UNREAD
    managers.steps(90)
    managers.book = known
    managers.steps(90)
    assert managers.told == Counter([FIRES])


def test_a_rule_that_cannot_be_read_ends_nothing() -> None:
    """A newer manager has made it, and told of what fires by it."""
    managers = herd(GONE)
    managers.kill("c")
    managers.steps(120)
    assert managers.told == Counter([FIRES])
    managers.book = AlarmBook(unread=frozenset({"gone"}))
    managers.steps(600)
    assert managers.told == Counter([FIRES])


def test_a_rule_that_is_gone_ends_what_fired_by_it() -> None:
    """As in groups."""
    managers = herd(GONE)
    managers.kill("c")
    managers.steps(90)
    managers.book = AlarmBook()
    managers.step()
    assert managers.told == Counter([FIRES, RESOLVES])


@pytest.mark.parametrize(
    ("fields", "place"),
    [({"groups": "g*"}, "groups"), ({"tasks": "t*"}, "tasks"), ({"labels": {"a": "b"}}, "labels")],
)
@pytest.mark.parametrize("kind", [kind for kind, traits in TRAITS.items() if traits.of_herd])
def test_a_rule_of_the_herd_is_about_no_group_task_or_label(
    kind: AlarmKind, fields: dict[str, Any], place: str
) -> None:
    """Each is told with its place."""
    threshold = {} if TRAITS[kind].unit is None else {"threshold": 1}
    (problem,) = problems_of([rule(kind, **threshold, **fields)])
    assert problem[0] == f"rules[0].{place}"
    assert not [*problems_of([rule(kind, **threshold)])]


def test_rules_of_the_herd_are_about_no_group() -> None:
    """A group with nothing else is not looked at for them."""
    assert AlarmBook((GONE, FAILING)).of_group("g") == ()


@pytest.mark.parametrize("seed", range(3))
def test_an_ordinary_hour_of_managers_rings_nothing(seed: int) -> None:
    """Restarts in order, one after the other, every ten minutes; a crash that is back in time; hiccups."""
    chance = random.Random(seed)
    managers = herd(*DEFAULT_RULES)
    for turn in range(1, 720):
        if turn % 120 == 0:
            for name in sorted(managers.managers):
                stopped = managers.leave(name)
                managers.steps(chance.randrange(5, 90))
                managers.start(stopped)
                managers.steps(10)
        if turn % 200 == 0:
            crashed = managers.kill(chance.choice(sorted(managers.managers)))
            managers.steps(40)
            managers.start(crashed)
        if turn % 50 == 0:
            managers.managers["b"].transact(3, failed=3, seconds_each=4.0)
        managers.step()
    assert managers.told == Counter()
    assert len(managers.managers) == 3


def test_the_same_hour_would_ring() -> None:
    """With less patience: the test above would see it."""
    hasty = [msgspec.structs.replace(each, for_ms=0) for each in DEFAULT_RULES if TRAITS[each.kind].of_herd]
    managers = herd(*hasty)
    crashed = managers.kill("c")
    managers.steps(40)
    managers.start(crashed)
    managers.steps(10)
    assert managers.told == Counter([("fires", "manager-gone", "c"), ("resolves", "manager-gone", "c")])
