"""What is known of every line that a daemon logs: its group, and who it is in it at the moment.

Not contextvars as structlog has them: a worker's tasks and threads are begun before it knows its member id.
So all of them share one mapping, which grows.
"""

from __future__ import annotations

from contextvars import ContextVar, copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping

Result = TypeVar("Result")

_SCOPE: ContextVar[dict[str, Any] | None] = ContextVar("log_scope", default=None)


def open_scope(**fields: Any) -> None:
    """Begin a scope for this task and all that it begins."""
    _SCOPE.set(fields)


def know(**fields: Any) -> None:
    """More, or something else, is known of every line of the present scope; None is nothing."""
    scope = _SCOPE.get()
    if scope is not None:
        scope.update(fields)


def in_scope(work: Callable[[], Result]) -> Callable[[], Result]:
    """`work` for a thread: it logs in the scope of whoever asked for it. To be called once."""
    return partial(copy_context().run, work)


def add_scope(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Structlog's processor; what a line says itself counts."""
    scope = _SCOPE.get() or {}
    return {**{name: value for name, value in scope.items() if value is not None}, **event}
