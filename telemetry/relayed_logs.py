"""The log of a process that another one writes: it has one form and one level, those of the daemon."""

from __future__ import annotations

import contextlib
import logging
import sys
from typing import TYPE_CHECKING, Any, Final

import msgspec
import structlog

from telemetry.scope import add_scope
from telemetry.secrets import scrub_fields

if TYPE_CHECKING:
    from collections.abc import MutableMapping

log = structlog.get_logger(__name__)

_LEVELS: Final = frozenset({"debug", "info", "warning", "error", "critical"})
_NO_FIELDS: Final = frozenset({"self", "method_name", "exc_info", "stack_info", "positional_args"})
"""Names that mean something to structlog: what code of a task has written may use them for anything."""


def log_for_relay() -> None:
    """Write the events of this process to stderr as `relay` reads them; all, for that one knows the level."""
    add_level = structlog.processors.add_log_level
    rendering: list[structlog.typing.Processor] = [
        structlog.processors.format_exc_info,
        _scrub,
        structlog.processors.JSONRenderer(),
    ]
    structlog.configure(
        processors=[add_level, add_scope, *rendering],
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[add_level, structlog.stdlib.add_logger_name, add_scope],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendering],
        )
    )
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.captureWarnings(capture=True)


def relay(line: str, **known: Any) -> None:
    """Write a line of that process into the log of this one; what is no event is an event as a whole.

    Args:
        line: as it came, without its end.
        known: what is known of the process, for lines that do not say it themselves.
    """
    if (fields := _fields(line)) is not None:
        level, event = fields.pop("level"), fields.pop("event")
        with contextlib.suppress(RecursionError):  # it is nested too deeply to be gone through
            getattr(log, level)(event, **{**known, **fields})
            return
    if line.strip():
        log.info(line, **known)


def _fields(line: str) -> dict[str, Any] | None:
    if not line.startswith("{"):
        return None
    try:
        fields = msgspec.json.decode(line, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        return None
    event, level = fields.get("event"), fields.get("level")
    is_event = isinstance(event, str) and isinstance(level, str) and level in _LEVELS
    return fields if is_event and not fields.keys() & _NO_FIELDS else None


def _scrub(_: Any, __: str, event: MutableMapping[str, Any]) -> dict[str, Any]:
    return scrub_fields(dict(event))
