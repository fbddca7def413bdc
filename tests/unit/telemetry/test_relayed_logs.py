from __future__ import annotations

import json
import subprocess
import sys

import pytest
import structlog

from telemetry.relayed_logs import relay

SPEAKING = """
import logging, warnings
from telemetry.relayed_logs import log_for_relay
from telemetry.scope import open_scope
from telemetry.secrets import SECRETS
import structlog
log_for_relay()
open_scope(group="g", task="t")
SECRETS.learn("correct horse")
log = structlog.get_logger()
log.debug("a small thing", url="correct horse")
try:
    1 / 0
except ZeroDivisionError:
    log.exception("no good")
logging.getLogger("lib").warning("theirs")
"""


def told(line: str, **known: str) -> list[dict[str, object]]:
    """What the log of this process has of a line."""
    with structlog.testing.capture_logs() as logs:
        relay(line, **known)
    return [dict(each) for each in logs]


def test_events_of_another_process_are_events_of_this_one() -> None:
    """With their level and fields, whatever they are; secrets that only the other knows are hidden by it."""
    process = subprocess.run([sys.executable, "-c", SPEAKING], capture_output=True, text=True, check=True)
    lines = [event for line in process.stderr.splitlines() for event in told(line, task="t")]
    small, failed, theirs = lines
    assert small == {"event": "a small thing", "log_level": "debug", "url": "***", "group": "g", "task": "t"}
    assert (failed["event"], failed["log_level"]) == ("no good", "error")
    assert "ZeroDivisionError" in str(failed["exception"])
    assert (theirs["event"], theirs["log_level"], theirs["logger"]) == ("theirs", "warning", "lib")


@pytest.mark.parametrize(
    "line", ["Killed", "{", json.dumps({"a": 1}), json.dumps({"event": "e", "level": "close"}), "[1]"]
)
def test_what_is_no_event_is_told_as_it_is(line: str) -> None:
    """Under the name of the task that it came from."""
    assert told(line, task="t") == [{"event": line, "log_level": "info", "task": "t"}]


def test_empty_lines_are_nothing() -> None:
    """Nobody misses them."""
    assert told("  ") == []


@pytest.mark.parametrize(
    "line",
    [
        '{"event": "x", "level": "info", "self": 1}',
        '{"event": "x", "level": "info", "method_name": 1}',
        '{"event": "x", "level": "info", "exc_info": true}',
        '{"event": "x", "level": ["info"]}',
        f'{{"event": "x", "level": "info", "deep": {"[" * 5000}{"]" * 5000}}}',
    ],
)
def test_what_code_of_a_task_prints_is_told_whatever_it_is(line: str) -> None:
    """Also what means something to the log itself, which would fail with it."""
    assert told(line, task="t") == [{"event": line, "log_level": "info", "task": "t"}]
