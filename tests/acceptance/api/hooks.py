"""Keeps sessions short enough for a herd of strangers: who waits for one of them waits for its session."""

from __future__ import annotations

from typing import Any

import schemathesis

LONGEST_MS = 20
"""The manager's `--max-session-timeout-ms`."""


@schemathesis.hook
def map_body(context: schemathesis.HookContext, body: Any) -> Any:
    """Most sessions that are asked for would be refused, and joining never get further."""
    if context.operation is None or not context.operation.path.endswith("/join"):
        return body
    session = body.get("session_timeout_ms") if isinstance(body, dict) else None
    if isinstance(session, int) and not isinstance(session, bool):
        body["session_timeout_ms"] = 1 + session % LONGEST_MS
    return body
