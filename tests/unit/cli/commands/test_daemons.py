from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from cli.commands.daemons import run_to_its_end
from protocol.errors import StartupError


def test_a_bug_that_ends_a_daemon_is_a_line_of_its_log() -> None:
    """Exit code 1, and an id like every other unexpected thing; no bare trace among lines of JSON."""

    def broken() -> int:
        raise ZeroDivisionError

    with capture_logs() as logs:
        assert run_to_its_end(broken) == 1
    [line] = logs
    assert (line["log_level"], line["exc_info"]) == ("error", True)
    assert line["cause_id"]


def test_what_a_user_can_change_is_no_bug() -> None:
    """It goes on to be said in one line."""

    def misconfigured() -> int:
        raise StartupError("--listen: no")

    with capture_logs() as logs, pytest.raises(StartupError):
        run_to_its_end(misconfigured)
    assert logs == []
    assert run_to_its_end(lambda: 3) == 3
