from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from protocol.states import Target
from tests.fakes.manager import granted
from worker.tasks.desired_state import is_outdated
from worker.tasks.grants import read_grant

GRANT = read_grant(granted("t", token=4))


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
