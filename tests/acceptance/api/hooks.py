"""Bends bodies by what JSON Schema has no words for.

Sessions are kept short: who waits for another member waits for its session. And whole numbers are written
as such, in 64 bits: to JSON Schema `12.0` is an integer, to the manager it is none (docs/rest-api.md).
"""

from __future__ import annotations

import os
from typing import Any

import schemathesis

from protocol.messages.base import MAX_INT
from protocol.task_metrics import LEAST_INT, MOST_INT

LONGEST_MS = int(os.environ.get("SCHEMATHESIS_SESSION_MS", "20"))
"""The manager's `--max-session-timeout-ms`; a longer one lets a long run go on from where a join led it."""

LONGEST_PATIENCE_MS = 3_600_000
"""The manager's `--max-rebalance-timeout-ms`."""

SHORTEST_ID = 36
"""The length of a UUID; what is shorter is made up, and nobody's."""


@schemathesis.hook
def map_body(context: schemathesis.HookContext, body: Any) -> Any:
    """Most joins would be refused, and what members send never get further."""
    body = whole(body)
    if context.operation is None or not context.operation.path.endswith("/join"):
        return body
    return _first_join(body) if isinstance(body, dict) else body


def _first_join(body: dict[str, Any]) -> dict[str, Any]:
    session, member_id = body.get("session_timeout_ms"), body.get("member_id")
    if isinstance(session, int) and not isinstance(session, bool) and abs(session) <= MAX_INT:
        body["session_timeout_ms"] = LONGEST_MS - session % 3
    patience = body.get("rebalance_timeout_ms")
    if (
        isinstance(patience, int)
        and not isinstance(patience, bool)
        and LONGEST_PATIENCE_MS < patience <= MAX_INT
    ):
        body["rebalance_timeout_ms"] = LONGEST_PATIENCE_MS
    if isinstance(member_id, str) and len(member_id) < SHORTEST_ID:
        body["member_id"] = ""
    return body


def whole(value: Any) -> Any:
    """`value` with whole numbers instead of floats that are whole, and those of 64 bits instead of larger."""
    if isinstance(value, dict):
        return {name: whole(each) for name, each in value.items()}
    if isinstance(value, list):
        return [whole(each) for each in value]
    if isinstance(value, bool) or not isinstance(value, int | float) or value % 1:
        return value
    return min(max(int(value), LEAST_INT), MOST_INT)
