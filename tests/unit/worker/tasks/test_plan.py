from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.states import Target
from tests.fakes.manager import granted
from worker.tasks.grants import read_grant
from worker.tasks.ownership import plan_round
from worker.tasks.wanted import is_outdated

TASKS = st.frozensets(st.sampled_from("abcdefgh"))
GRANT = read_grant(granted("t", token=4))


@given(assigned=TASKS, held=TASKS, leaving=TASKS)
def test_a_round_touches_only_what_moves(
    assigned: frozenset[str], held: frozenset[str], leaving: frozenset[str]
) -> None:
    """What is assigned and held is never left; what is held elsewhere goes; what goes is not claimed."""
    leaving &= held
    round_ = plan_round(assigned, held, leaving)
    assert round_.leave.isdisjoint(assigned)
    assert held - assigned == round_.leave | (leaving - assigned)
    assert round_.claim == assigned - leaving


def test_nothing_is_left_twice() -> None:
    """A task on its way out is not told again."""
    assert plan_round({"a"}, {"a", "b"}, {"b"}).leave == frozenset()


@pytest.mark.parametrize(
    ("changes", "outdated"),
    [
        ({}, False),
        ({"target": Target.PAUSED}, True),
        ({"target": Target.STOPPED}, True),
        ({"restart_count": 1}, True),
    ],
)
def test_what_makes_a_running_query_outdated(changes: dict[str, Any], outdated: bool) -> None:  # noqa: FBT001 - a column
    """Another target or restart count; another token is another life."""
    assert is_outdated(GRANT, replace(GRANT, **changes)) is outdated


def test_a_version_is_nothing_by_itself() -> None:
    """Neither is another one a change, nor the same one the same definition."""
    assert not is_outdated(GRANT, read_grant(granted("t", token=4, version=2)))
    assert is_outdated(GRANT, read_grant(granted("t", token=4, sql="SELECT 1 FROM source")))


@pytest.mark.parametrize(
    ("changes", "outdated"),
    [
        ({"weight": 3.0}, False),
        ({"worker": "w1"}, False),
        ({"labels": {"zone": "a"}}, False),
        ({"restart": {"max_restarts": 1}}, False),
        ({"output_mode": "update"}, True),
        ({"trigger": {"processing_time": "1 second"}}, True),
        ({"sql": "SELECT 1 FROM source"}, True),
        ({"spark_conf": {"a": "b"}}, True),
    ],
)
def test_a_definition_counts_by_its_effect(changes: dict[str, Any], outdated: bool) -> None:  # noqa: FBT001 - a column
    """What only the assignor or the worker reads changes under a running query."""
    assert is_outdated(GRANT, read_grant(granted("t", token=4, version=2, **changes))) is outdated


def test_a_definition_nobody_can_read_is_a_change() -> None:
    """In either direction."""
    broken = read_grant(granted("t", token=4, version=2, sink=None, nonsense=1))
    assert is_outdated(GRANT, broken)
    assert is_outdated(broken, GRANT)
