from __future__ import annotations

import sys

import pytest
import structlog

from telemetry.logs import LogSettings, configure_logging
from tests.fakes.foreign_errors import RAISED, kind_of


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


@pytest.mark.parametrize("error", RAISED, ids=kind_of)
@pytest.mark.parametrize("settings", [LogSettings(log_format="text"), LogSettings(log_format="json")])
def test_an_error_that_does_harm_where_it_is_shown_is_a_line(
    capfd: pytest.CaptureFixture[str], error: BaseException, settings: LogSettings
) -> None:
    """Whoever logs it goes on."""
    try:
        configure_logging(settings)
        structlog.get_logger().error("a task is in trouble", exc_info=error)
    finally:
        structlog.reset_defaults()
    told = capfd.readouterr().err
    assert "a task is in trouble" in told
    assert type(error).__name__ in told
