"""How a daemon logs: key-value events on stderr, for people or for machines."""

from __future__ import annotations

import contextlib
import logging
import sys
from typing import TYPE_CHECKING, Annotated, Any, Literal, TextIO, cast

import msgspec
import structlog
from structlog.tracebacks import ExceptionDictTransformer

from telemetry.foreign_errors import FAILURES, trace_of
from telemetry.line_renderer import render_line
from telemetry.scope import add_scope
from telemetry.secrets import scrub_fields

if TYPE_CHECKING:
    from collections.abc import MutableMapping

LEVELS = {
    name: logging.getLevelNamesMapping()[name.upper()] for name in ("debug", "info", "warning", "error")
}


class LogSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What is logged, and in which form."""

    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        msgspec.Meta(description="The least important events to log: debug, info, warning or error"),
    ] = "info"
    log_format: Annotated[
        Literal["text", "json"],
        msgspec.Meta(description="text, one line an event for people, or json, one object a line"),
    ] = "text"


class Level:
    """The least important events that are logged; may change while the daemon runs."""

    def __init__(self, name: str = "info") -> None:
        self.set(name)

    @property
    def name(self) -> str:
        """One of `LEVELS`."""
        return self._name

    def set(self, name: str) -> None:
        """From now on; raises `ValueError` for what is none of `LEVELS`."""
        if name not in LEVELS:
            raise ValueError(f"level: must be one of {', '.join(LEVELS)}")
        self._name = name
        self._number = LEVELS[name]

    def drop_below(self, _: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        """Structlog's processor, after the one that says the level."""
        if LEVELS.get(event["level"], logging.CRITICAL) < self._number:
            raise structlog.DropEvent
        return event

    def admits(self, record: logging.LogRecord) -> bool:
        """Whether a line is severe enough, as a filter of the standard library asks."""
        return record.levelno >= self._number


LEVEL = Level()
"""Of this process: it has one log."""


def configure_logging(settings: LogSettings) -> None:
    """Send the events of this process, and the warnings of libraries, to stderr, all in one form."""
    LEVEL.set(settings.log_level)
    stream = cast("TextIO", _Unfailing(sys.stderr))
    add_level = structlog.processors.add_log_level
    structlog.configure(
        processors=[add_level, LEVEL.drop_below, add_scope, *_rendering(settings)],
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG),
        logger_factory=structlog.WriteLoggerFactory(file=stream),
        cache_logger_on_first_use=True,
    )
    _take_in_others(stream, [add_level, structlog.stdlib.add_logger_name, add_scope], _rendering(settings))


def _take_in_others(
    stream: TextIO, known: list[structlog.typing.Processor], rendering: list[structlog.typing.Processor]
) -> None:
    """Libraries log by the standard library, and warn; their lines look like ours."""
    handler = logging.StreamHandler(stream)
    handler.addFilter(LEVEL.admits)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=known,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendering],
        )
    )
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.captureWarnings(capture=True)


class _Unfailing:
    """A stream that loses what it cannot write: a full disk or a closed pipe must not stop a daemon."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        """Write `text`, if possible."""
        with contextlib.suppress(OSError):
            self._stream.write(text)

    def flush(self) -> None:
        """Let go of what was written, if possible."""
        with contextlib.suppress(OSError):
            self._stream.flush()


def _rendering(settings: LogSettings) -> list[structlog.typing.Processor]:
    """Traces without the values of local variables: those are where the secrets are."""
    stamp = structlog.processors.TimeStamper(fmt="iso", utc=True)
    if settings.log_format == "json":
        traces = structlog.processors.ExceptionRenderer(ExceptionDictTransformer(show_locals=False))
        return [_unfailing(traces), _scrub, stamp, structlog.processors.JSONRenderer()]
    for_people = (
        structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
        if sys.stderr.isatty()
        else render_line
    )
    return [_unfailing(structlog.processors.format_exc_info), _scrub, stamp, for_people]


def _unfailing(traces: structlog.typing.Processor) -> structlog.typing.Processor:
    """An error may end the process where it is shown: it is of others' code, and so are its words."""

    def told(logger: Any, method: str, event: MutableMapping[str, Any]) -> Any:
        given = event.get("exc_info")
        raised = given if isinstance(given, BaseException) else sys.exc_info()[1]
        try:
            return traces(logger, method, event)
        except FAILURES:
            return {**event, "exception": None if raised is None else trace_of(raised)}

    return told


def _scrub(_: Any, __: str, event: MutableMapping[str, Any]) -> dict[str, Any]:
    return scrub_fields(dict(event))
