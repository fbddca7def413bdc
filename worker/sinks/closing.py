"""Letting go of sinks: what goes wrong with that undoes nothing that was done, and harms nobody else."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import structlog

from telemetry.foreign_errors import FAILURES, first_line_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from worker.sinks.base import Connected, Sink

    Opened = TypeVar("Opened", bound=Connected | Sink)

log = structlog.get_logger(__name__)


def let_go(opened: Connected | Sink | None) -> None:
    """Close a sink, or what `connect_sink` has returned and none has taken; what goes wrong is logged."""
    try:
        if opened is not None:
            opened.close()
    except FAILURES as error:
        log.warning("what a sink has opened could not be closed", why=first_line_of(error))


@contextmanager
def letting_go(opened: Opened) -> Iterator[Opened]:
    """It, for as long as the block takes."""
    try:
        yield opened
    finally:
        let_go(opened)
