"""Rows that a task has put aside."""

from __future__ import annotations

from typing import Any

from protocol.messages.quarantine import QuarantinedRow


def row(**fields: Any) -> QuarantinedRow:
    """One that violates an expectation, unless told otherwise."""
    told: dict[str, Any] = {
        "id": "0-41-3",
        "batch_id": 41,
        "token": 7,
        "at_ms": 1_790_000_000_000,
        "reason": "violation",
        "name": "delay_is_known",
        "error": "dep_delay IS NOT NULL",
        "form": "row",
        "raw": '{"carrier": "UA", "dep_delay": null}',
        "origin": {"topic": "delays", "partition": 2, "offset": 1034},
    }
    return QuarantinedRow(**told | fields)
