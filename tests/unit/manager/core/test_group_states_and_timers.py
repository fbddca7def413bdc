from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manager.core import group_states
from manager.core.group import Group
from manager.core.member import AnsweredTwiceError, Parked
from manager.core.timers import FEW, Timers
from manager.core.turn import ClockReading, Turn
from manager.settings import GroupSettings
from protocol.states import GroupState

LEGAL = {
    (GroupState.EMPTY, GroupState.PREPARING_REBALANCE),
    (GroupState.STABLE, GroupState.PREPARING_REBALANCE),
    (GroupState.AWAITING_SYNC, GroupState.PREPARING_REBALANCE),
    (GroupState.PREPARING_REBALANCE, GroupState.AWAITING_SYNC),
    (GroupState.PREPARING_REBALANCE, GroupState.EMPTY),
    (GroupState.AWAITING_SYNC, GroupState.STABLE),
} | {(state, GroupState.DEAD) for state in GroupState}


def test_the_table_has_the_contracts_moves_and_no_other() -> None:
    """Protocol §4, States."""
    assert {
        (source, target) for _, sources, target in group_states.TRANSITIONS for source in sources
    } == LEGAL


@pytest.mark.parametrize("state", GroupState)
@pytest.mark.parametrize("trigger", [move[0] for move in group_states.TRANSITIONS])
def test_an_illegal_move_raises_tells_the_history_and_changes_nothing(
    state: GroupState, trigger: str
) -> None:
    """Every state against every trigger."""
    group = Group("g", GroupSettings())
    group.state = state
    turn = Turn(group, ClockReading(5, 1005), str)
    turn.note("something happened")
    [(sources, target)] = [(s, t) for name, s, t in group_states.TRANSITIONS if name == trigger]
    if state in sources:
        group_states.move(turn, trigger)
        assert group.state is target
    else:
        with pytest.raises(group_states.IllegalGroupTransitionError, match=r"1005 \[0\] something happened"):
            group_states.move(turn, trigger)
        assert group.state is state


def test_a_second_answer_raises() -> None:
    """Exactly once."""
    parked = Parked()
    parked.settle()
    with pytest.raises(AnsweredTwiceError):
        parked.settle()


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("set"), st.integers(0, 4), st.integers(0, 30)),
            st.tuples(st.just("cancel"), st.integers(0, 4), st.just(0)),
            st.tuples(st.just("pass"), st.integers(0, 9), st.just(0)),
        )
    )
)
def test_timers_do_what_a_plain_dictionary_of_deadlines_would(steps: list[tuple[str, int, int]]) -> None:
    """Set, move, cancel, fire, against the obvious model; the next deadline is never late."""
    timers: Timers[int] = Timers()
    model: dict[int, int] = {}
    now = 0
    for what, number, deadline in steps:
        if what == "set":
            timers.set(number, deadline)
            model[number] = deadline
        elif what == "cancel":
            timers.cancel(number)
            model.pop(number, None)
        else:
            now += number
            fired = set()
            while (key := timers.pop_due(now)) is not None:
                fired.add(key)
            assert fired == {key for key, at in model.items() if at <= now}
            model = {key: at for key, at in model.items() if at > now}
        following = timers.next_deadline()
        assert not model or (following is not None and following <= min(model.values()))
        assert all((key in timers) == (key in model) for key in range(5))


def test_moving_a_deadline_later_allocates_nothing_in_the_heap() -> None:
    """A heartbeat is a dictionary write."""
    timers: Timers[str] = Timers()
    for deadline in range(1000):
        timers.set("session", deadline)
    assert len(timers._heap) == 1


@pytest.mark.parametrize("seed", range(5))
def test_no_more_is_kept_of_deadlines_that_are_gone_than_of_those_that_count(seed: int) -> None:
    """Whichever way they went: cancelled, moved or come. What counts is still there, to the millisecond."""
    random, timers, model, now = Random(seed), Timers[int](), dict[int, int](), 0
    for _ in range(10_000):
        key, deadline = random.randrange(300), now + random.randrange(1000)
        match random.choice(["set", "set", "set", "cancel", "pass"]):
            case "set":
                timers.set(key, deadline)
                model[key] = deadline
            case "cancel":
                timers.cancel(key)
                model.pop(key, None)
            case _:
                now += 5
                while (popped := timers.pop_due(now)) is not None:
                    assert model.pop(popped) <= now
        assert max(len(timers._heap), len(timers._queued)) <= 2 * len(model) + FEW
    assert {key: timers.deadline(key) for key in model} == model
    while (popped := timers.pop_due(now + 1000)) is not None:
        del model[popped]
    assert model == {}


@pytest.mark.parametrize("seed", range(5))
def test_what_is_left_when_others_are_cleared_away_comes_in_time(seed: int) -> None:
    """Most are cancelled, some after a move; what counts comes at its moment, and is announced no later."""
    random, timers = Random(seed), Timers[int]()
    model = {key: random.randrange(100_000) for key in range(1000)}
    for key, deadline in model.items():
        timers.set(key, deadline + random.choice([0, 1000]))
        timers.set(key, deadline)
    for key in random.sample(range(1000), 900):
        timers.cancel(key)
        del model[key]
    assert len(timers._heap) <= 2 * len(model) + FEW
    for at in sorted(set(model.values())):
        following = timers.next_deadline()
        assert following is not None
        assert following <= at
        due = {key for key in model if model[key] == at}
        assert {timers.pop_due(at) for _ in due} == due


def test_ids_that_come_and_go_leave_nothing_in_the_heap() -> None:
    """A hundred thousand deadlines of half an hour, each cancelled, took 55 MB until it was over."""
    timers: Timers[str] = Timers()
    for number in range(100_000):
        timers.set(f"member-{number}", 1_800_000 + number)
    for number in range(100_000):
        timers.cancel(f"member-{number}")
    assert len(timers._heap) <= FEW


def test_what_is_gone_is_cleared_away_when_what_counted_has_come() -> None:
    """The last deadline that comes leaves nothing to be kept for the others' sake."""
    timers: Timers[int] = Timers()
    for number in range(600):
        timers.set(number, 10 if number < 300 else 1000)
    for number in range(300, 600):
        timers.cancel(number)
    while timers.pop_due(10) is not None:
        pass
    assert len(timers._heap) <= FEW


def test_what_is_gone_is_cleared_away_in_one_go() -> None:
    """So that a cancellation costs the same however many there are: as many of them pay for each look."""
    timers, looks = Timers[int](), 0
    for number in range(10_000):
        timers.set(number, number)
    kept = len(timers._heap)
    for number in range(10_000):
        timers.cancel(number)
        looks += kept if len(timers._heap) < kept else 0
        kept = len(timers._heap)
    assert looks <= 20_000
