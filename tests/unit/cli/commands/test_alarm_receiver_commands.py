"""`sparkherd alarms receivers` and `test-receiver`: who is told of alarms."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from manager.http.openapi.examples import EXAMPLES
from protocol.messages.alarm_receivers import AlarmReceiverListResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.cli.conftest import Run
    from tests.unit.cli.scripted_manager import ScriptedManager

LISTED = EXAMPLES[AlarmReceiverListResponse]
TEST = "/v1/alarms/receivers/ops/test"


def test_receivers(sparkherd: Callable[..., Run], herd: ScriptedManager) -> None:
    """A line for each: how it is, and why it last took nothing; as JSON what the manager said."""
    herd.on("GET", "/v1/alarms/receivers", LISTED)
    lines = sparkherd("alarms", "receivers", "--manager", herd.url).out.splitlines()
    assert lines[1].split()[:4] == ["ops", "email", "yes", "delivering"]
    assert lines[2].split()[:4] == ["chat", "slack", "no", "away"]
    assert lines[2].rstrip().endswith("HTTP 503")
    shown = json.loads(sparkherd("alarms", "receivers", "--json", "--manager", herd.url).out)
    assert shown == LISTED


@pytest.mark.parametrize(
    ("delivered", "reason", "sentence"),
    [
        (True, None, "ops has taken a test message"),
        (True, "b@x: 550 no", "ops has taken a test message: b@x: 550 no"),
        (False, "HTTP 404", "ops has not taken a test message: HTTP 404"),
    ],
)
def test_a_test_says_what_became_of_it(
    sparkherd: Callable[..., Run],
    herd: ScriptedManager,
    *,
    delivered: bool,
    reason: str | None,
    sentence: str,
) -> None:
    """By its exit code, too."""
    herd.on("POST", TEST, {"error": "NONE", "delivered": delivered, "reason": reason})
    run = sparkherd("alarms", "test-receiver", "ops", "--manager", herd.url)
    assert (run.code, run.out.strip()) == (0 if delivered else 1, sentence)
    run = sparkherd("alarms", "test-receiver", "ops", "--json", "--manager", herd.url)
    assert json.loads(run.out) == {"receiver": "ops", "delivered": delivered, "reason": reason}


def test_a_receiver_that_is_not_there(sparkherd: Callable[..., Run], herd: ScriptedManager) -> None:
    """The manager's own words."""
    told = "receiver: there is none of that name; there are ops"
    herd.on("POST", TEST, {"error": "NOT_FOUND", "message": told, "retriable": False}, 404)
    run = sparkherd("alarms", "test-receiver", "ops", "--manager", herd.url)
    assert (run.code, run.err.strip()) == (1, f"sparkherd: NOT_FOUND: {told}")
