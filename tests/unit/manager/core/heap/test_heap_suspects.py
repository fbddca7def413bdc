"""Which task may be why a heap grows: herds whose tasks move, on a clock that is moved by the test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manager.core.heap.evidence import Evidence
from manager.core.heap.marks import Doing
from manager.core.heap.stretches import Holder, Stretch
from manager.core.heap.suspects import HeapSuspects
from tests.unit.manager.core.heap.herds import HEAP, MIB, MINUTE, Herd, holders

if TYPE_CHECKING:
    from collections.abc import Callable


def test_a_heap_that_rises_while_one_task_runs_is_that_tasks() -> None:
    """There is nobody else; it is told once."""
    herd = Herd({"x": 10})
    herd.run(20, anna="x")
    assert herd.suspected == {"x": "alone"}
    assert [each.holder.task for each in herd.told] == ["x"]


def test_of_several_nobody_is_suspected_until_they_have_run_apart() -> None:
    """It is said that the heap rises, and who may be why."""
    herd = Herd({"x": 10})
    herd.run(20, anna="abx", berta="cd")
    assert herd.suspected == {}
    undecided = herd.suspects.unresolved_of("anna")
    assert undecided is not None
    assert undecided.tasks == ("a", "b", "x")
    rise = undecided.rise
    assert rise.bytes == pytest.approx(10 * MIB * rise.over_ms / MINUTE, rel=0.5)
    assert herd.suspects.unresolved_of("berta") is None


@pytest.mark.parametrize(
    "then",
    [
        {"anna": "ab", "berta": "cdx"},
        {"anna": "ab", "berta": "cd"},
        {"anna": "x", "berta": "abcd"},
        {"anna": "cdx", "berta": "ab"},
    ],
)
def test_who_has_run_without_a_rise_is_cleared(then: dict[str, str]) -> None:
    """Be it that the task has moved away, was stopped, stayed, or got other neighbours."""
    herd = Herd({"x": 10})
    herd.run(20, anna="abx", berta="cd")
    herd.run(20, **then)
    assert herd.suspected.keys() == {"x"}


def test_a_jvm_that_has_enough_clears_whom_it_runs() -> None:
    """It leaves its old generation alone: what is in use there is what it keeps at most, and takes longer."""
    herd = Herd({"x": 10})
    herd.lazy = {"berta"}
    herd.run(20, anna="abx", berta="cd")
    herd.run(5, anna="cdx", berta="ab")
    assert herd.suspected == {}
    herd.run(35, anna="cdx", berta="ab")
    assert herd.suspected == {"x": "others_cleared"}


def test_what_was_left_when_it_was_gone_is_told() -> None:
    """The fall is half of the evidence; of who stayed, nothing of the kind is known."""
    herd = Herd({"x": 10}, noise=0.001)
    herd.run(20, anna="abx")
    herd.run(20, anna="ab")
    suspicion = herd.suspects.suspicions["x"]
    assert suspicion.ground == "others_cleared"
    assert suspicion.stretch.left_after(Holder("x", 1)) == pytest.approx(40 * MIB, rel=0.03)
    assert suspicion.stretch.left_after(Holder("a", 1)) is None


def test_a_worker_that_died_of_it_is_evidence_still() -> None:
    """What it was is known by where its tasks run after it."""
    herd = Herd({"x": 30})
    herd.run(10, anna="abx", berta="cd")
    herd.suspects.gone("anna")
    herd.run(10, berta="abcd", carl="x")
    assert "x" in herd.suspected


@pytest.mark.parametrize("seed", range(20))
def test_nobody_is_suspected_of_noise(seed: int) -> None:
    """Whoever runs where, with batches in flight whenever the heap is collected."""
    herd = Herd({})
    herd._chance.seed(seed)
    for anna, berta in (("abc", "def"), ("abcdef", ""), ("a", "bcdef"), ("abc", "def")):
        herd.run(15, anna=anna, berta=berta)
        assert herd.told == []
        assert [herd.suspects.unresolved_of(each) for each in ("anna", "berta")] == [None, None]


def curve(shape: Callable[[float], float], minutes: int = 20) -> Stretch:
    """What is left, in MiB, by the minute."""
    stretch = Stretch("anna", holders("a"), HEAP, 0)
    for look in range(minutes * 6):
        stretch.look(look * 10_000, int(shape(look / 6) * MIB), None, {})
    return stretch


def test_a_rise_that_levels_off_is_none() -> None:
    """Caches fill, and histories are kept up to a length."""
    assert curve(lambda minute: 400 - 300 * 0.6**minute).rise is None
    assert curve(lambda minute: 100 + 300 * (minute > 10) + minute / 100).rise is None


def test_a_rise_has_to_be_large_and_long() -> None:
    """A twentieth of the heap in ten minutes or more, three times as much in less, nothing in two."""
    assert curve(lambda minute: 100 + 2 * minute).rise is None
    assert curve(lambda minute: 100 + 4 * minute).rise is not None
    assert curve(lambda minute: 100 + 15 * minute, minutes=9).rise is None
    assert curve(lambda minute: 100 + 30 * minute, minutes=9).rise is not None
    assert curve(lambda minute: 100 + 300 * minute, minutes=2).rise is None


def test_a_rise_after_good_hours_is_one_of_its_own() -> None:
    """A worker runs the same for days: what it keeps of them is bounded, and hides nothing."""
    stretch = curve(lambda minute: 100 + max(0, minute - 300) * 10, minutes=315)
    assert stretch.rise is not None
    assert len(stretch.lows) <= 600


def test_what_was_before_a_rise_clears_nobody() -> None:
    """Its task was harmless then, too."""
    herd = Herd({}, noise=0.01)
    herd.run(90, anna="ax", berta="cd")
    herd._leaks = {"x": 10}
    herd.run(30, anna="abx", berta="cd")
    assert herd.suspected == {}
    herd.run(30, anna="cx", berta="abd")
    assert herd.suspected == {"x": "others_cleared"}


def test_a_suspicion_is_taken_back_when_the_task_is_harmless_elsewhere() -> None:
    """It was alone then."""
    herd = Herd({"x": 10})
    herd.run(20, anna="x")
    herd._leaks = {}
    herd.run(60, anna="", berta="x")
    assert herd.suspected == {}


def test_a_figure_that_is_told_again_is_no_other_collection() -> None:
    """Nor is one that was told when others ran."""
    suspects = HeapSuspects()
    for look in range(240):
        names = "abx" if look < 120 else "ab"
        low = (100 + 2 * min(look, 119)) * MIB
        suspects.look(
            "anna", holders(names), low=low, ceiling=90 * MIB, heap_max=HEAP, doing={}, at_ms=look * 10_000
        )
    assert suspects.suspicions == {}


def test_state_that_grows_as_the_heap_does_names_its_task() -> None:
    """Spark tells how large the state of each is; then nobody needs to move."""
    suspects = HeapSuspects()
    for look in range(120):
        grown = look * 2 * MIB
        suspects.look(
            "anna",
            holders("abx"),
            low=100 * MIB + grown,
            ceiling=None,
            heap_max=HEAP,
            doing={
                "a": Doing(look, 5 * MIB + min(look, 3) * 90 * MIB),
                "x": Doing(look, 7 * MIB + grown * 3 // 4),
            },
            at_ms=look * 10_000,
        )
    assert {task: each.ground for task, each in suspects.suspicions.items()} == {"x": "state"}


def test_a_slower_leak_beside_a_quick_one_is_found_after_it() -> None:
    """Each is half cleared at most by what it does alone."""
    herd = Herd({"x": 20, "y": 8}, noise=0.01)
    herd.run(20, anna="axy", berta="cd")
    herd.run(20, anna="ay", berta="cdx")
    herd.run(20, anna="cd", berta="ay")
    herd.run(20, anna="cdy", berta="a")
    assert set(herd.suspected) == {"x", "y"}


def test_a_task_of_another_version_is_another_holder() -> None:
    """What its old definition did says nothing of the new one."""
    suspects = HeapSuspects()
    for look in range(120):
        version = 1 if look < 60 else 2
        suspects.look(
            "anna",
            frozenset({Holder("x", version)}),
            low=(100 + 4 * look if version == 1 else 100) * MIB + look,
            ceiling=None,
            heap_max=HEAP,
            doing={},
            at_ms=look * 10_000,
        )
    assert suspects.suspicions["x"].holder == Holder("x", 1)


def test_who_is_pardoned_begins_anew() -> None:
    """Nothing that was seen with it accuses anybody any more."""
    herd = Herd({"x": 10})
    herd.run(20, anna="x", berta="cd")
    herd.suspects.forget("x")
    assert herd.suspected == {}
    herd.run(1, anna="x", berta="cd")
    assert herd.suspected == {}
    herd.run(20, anna="x", berta="cd")
    assert herd.suspected == {"x": "alone"}
    assert len(herd.told) == 2


def test_what_clears_somebody_stays_when_another_is_pardoned() -> None:
    """It ran beside a task that is started anew, and nothing grew there."""
    herd = Herd({"x": 10})
    herd.run(20, anna="ax", berta="cd")
    herd.run(20, anna="cx", berta="ad")
    assert herd.suspected.keys() == {"x"}
    herd.suspects.forget("d")
    herd.run(1, anna="cx", berta="ad")
    assert herd.suspected.keys() == {"x"}


@pytest.mark.parametrize("share", [0, 10])
def test_who_idles_clears_itself_of_nothing(share: int) -> None:
    """It leaks with its batches, of which it does none elsewhere, or a tenth; its neighbour is not blamed."""
    herd = Herd({"x": 10}, noise=0.01)
    herd.run(20, anna="ax", berta="cd")
    herd._leaks = {}
    for minute in range(60):
        herd.idle = set() if share and minute % share == 0 else {"x"}
        herd.run(1, anna="cd", berta="x", carl="a" if minute > 50 else "")
    assert "a" not in herd.suspected


def test_who_did_nothing_while_a_heap_rose_is_cleared_by_time() -> None:
    """Or a task without data would keep its neighbours from ever being told apart."""
    herd = Herd({"x": 10})
    herd.idle = {"a"}
    herd.run(20, anna="ax", berta="cd")
    herd.run(20, anna="x", berta="acd")
    assert herd.suspected.keys() == {"x"}


@pytest.mark.parametrize("workers", [50, 300])
def test_a_rebalance_of_many_workers_loses_no_suspicion(workers: int) -> None:
    """All tasks move at once, and are idle then; what rose is kept before what did not, and told once."""
    suspects = HeapSuspects()
    told: list[str] = []
    for look in range(120):
        for number in range(workers):
            at = number if look < 80 else (number + 1) % workers
            judged = suspects.look(
                f"w{number}",
                holders([f"t{at}"]),
                low=(100 + (10 * look if at == 0 and look < 80 else 0)) * MIB + look % 2,
                ceiling=None,
                heap_max=HEAP,
                doing={f"t{at}": Doing(min(look, 80))},
                at_ms=look * 10_000,
            )
            told += [each.holder.task for each in judged.news] if judged is not None else []
    assert told == ["t0"]
    assert suspects.suspicions.keys() == {"t0"}


def test_what_is_kept_is_bounded_by_the_workers_there_are() -> None:
    """However often their tasks move; a rise outlives what did not rise."""
    herd = Herd({"x": 60})
    herd.run(5, anna="x", berta="ab")
    for round_number in range(200):
        names = "abcd"[round_number % 4]
        herd.run(1, anna=names, berta="abcd".replace(names, ""))
    assert len(herd.suspects.evidence) == 2 + 64
    assert herd.suspected.keys() == {"x"}


def test_a_suspicion_that_comes_and_goes_is_told_once_an_hour() -> None:
    """Whoever reads events has read it."""
    herd = Herd({"x": 10}, noise=0.001)
    for _ in range(4):
        herd._leaks = {"x": 10}
        herd.run(30, anna="x")
        herd._leaks = {"x": -10}
        herd.run(30, anna="x")
    assert len(herd.told) == 1
    herd._leaks = {}
    herd.run(130, anna="x")
    assert herd.suspected == {}
    herd._leaks = {"x": 10}
    herd.run(30, anna="x")
    assert len(herd.told) == 2


def test_a_few_stretches_of_each_worker_are_kept() -> None:
    """What clears somebody in a large group is kept as long as in a small one."""
    evidence = Evidence()
    for move in range(6):
        for number in range(100):
            stretch = Stretch(f"w{number}", holders([f"t{(number + move) % 100}"]), HEAP, move * MINUTE)
            evidence.begin(stretch)
            stretch.look((move + 1) * MINUTE, None, None, {})
            evidence.trim(move * MINUTE, lambda _: None)
    assert len(evidence) == 300
    assert [len(evidence.of_task(f"t{number}")) for number in (0, 50)] == [3, 3]
    evidence.trim(90_000_000, lambda _: None)
    assert len(evidence) == len(evidence.open) == 100


def test_a_stretch_of_less_than_half_a_minute_is_not_kept() -> None:
    """It says nothing."""
    evidence = Evidence()
    for at_ms, least in ((0, 29_999), (MINUTE, 30_000)):
        stretch = Stretch("w", holders("a"), HEAP, at_ms)
        evidence.begin(stretch)
        stretch.look(at_ms + least, None, None, {})
        assert (evidence.end("w") is stretch) == (least == 30_000)
    assert evidence.of_task("a") == [stretch]


def test_six_collections_say_what_a_jvm_keeps_at_most() -> None:
    """Of fewer, each may have been one with a large batch under way."""
    stretch = Stretch("w", holders("a"), HEAP, 0)
    for look in range(6):
        assert stretch.flat_since(0) is None
        stretch.look(look * 10_000, None, (90 - look) * MIB, {})
    for since, over_ms in ((0, 50_000), (20_000, 30_000)):
        flat = stretch.flat_since(since)
        assert flat is not None
        assert (flat.over_ms, flat.grown) == (over_ms, 85 * MIB)


def test_a_stretch_is_judged_each_half_minute() -> None:
    """However often its worker tells its figures."""
    suspects = HeapSuspects()

    def is_judged(at_ms: int) -> bool:
        told = suspects.look("w", holders("a"), low=1, ceiling=1, heap_max=HEAP, doing={}, at_ms=at_ms)
        return told is not None

    assert [is_judged(second * 1_000) for second in (0, 10, 29, 30, 31, 60)] == [
        True,
        False,
        False,
        True,
        False,
        True,
    ]


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_no_innocent_task_is_accused_because_others_are_cleared(data: st.DataObject) -> None:
    """Whoever runs where and idles when: one task leaks with each of its batches, and nobody else is told."""
    herd = Herd({"x": data.draw(st.sampled_from([10, 20, 40]))}, noise=0.005)
    herd.by_batches = True
    for _ in range(data.draw(st.integers(2, 5))):
        places = {task: data.draw(st.sampled_from(["anna", "berta", "carl"])) for task in "abx"}
        herd.idle = data.draw(st.sets(st.sampled_from("abx")))
        workers = {at: "".join(t for t in places if places[t] == at) for at in ("anna", "berta", "carl")}
        herd.run(data.draw(st.integers(3, 25)), **workers)
    assert herd.suspected.keys() <= {"x"}


def test_evidence_of_yesterday_is_none() -> None:
    """A day is long enough to look."""
    herd = Herd({"x": 10})
    herd.run(20, anna="x")
    herd.suspects.gone("anna")
    herd.at_ms += 86_400_000
    herd.run(2, berta="cd")
    assert herd.suspected == {}
