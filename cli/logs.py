"""How a daemon logs: key-value events on stderr, for people or for machines."""

from __future__ import annotations

import contextlib
import logging
import sys
from typing import Annotated, Literal, TextIO, cast

import msgspec
import structlog


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


def configure_logging(settings: LogSettings) -> None:
    """Send the events of this process, and the warnings of libraries, to stderr."""
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(asctime)s %(name)s %(message)s")
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *_rendering(settings),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(file=cast("TextIO", _Unfailing(sys.stderr))),
        cache_logger_on_first_use=True,
    )


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
    if settings.log_format == "json":
        return [structlog.processors.dict_tracebacks, structlog.processors.JSONRenderer()]
    return [
        structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
    ]
