from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import structlog

from telemetry.logs import LogSettings, configure_logging

if TYPE_CHECKING:
    import pytest


class FullDisk:
    """A stream that takes nothing."""

    def write(self, _: str) -> None:
        raise OSError(28, "No space left on device")

    def flush(self) -> None:
        raise OSError(28, "No space left on device")

    def isatty(self) -> bool:
        return False


def test_a_log_that_cannot_be_written_stops_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk is full for the log as for everything else."""
    monkeypatch.setattr(sys, "stderr", FullDisk())
    try:
        configure_logging(LogSettings())
        structlog.get_logger().error("disk full", exc_info=ValueError("really"))
    finally:
        structlog.reset_defaults()
