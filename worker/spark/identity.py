"""The names by which sinks know a query: of a task that was transferred, those that it was created under."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.sinks.fence import Owner

if TYPE_CHECKING:
    from worker.query_engine import QuerySpec


def owner_of(spec: QuerySpec) -> Owner:
    """Who writes, as fences have it."""
    home = spec.known_as
    return Owner(home.group, home.task, spec.token, spec.resets)
