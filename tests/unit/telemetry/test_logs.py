from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from telemetry.logs import Level

SETUP = """
import logging, threading, warnings
import structlog
from telemetry.logs import LEVEL, LogSettings, configure_logging
from telemetry.scope import in_scope, know, open_scope
configure_logging(LogSettings(log_format=FORMAT))
log = structlog.get_logger()
"""


def said(script: str, form: str = "json") -> str:
    """What a process of its own says: the log is one of a process."""
    done = subprocess.run(
        [sys.executable, "-c", SETUP.replace("FORMAT", repr(form)) + script],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == ""
    return done.stderr


def lines(script: str) -> list[dict[str, Any]]:
    """Each line as JSON, which all of them must be."""
    return [json.loads(line) for line in said(script).splitlines()]


def test_every_line_is_json_whoever_says_it() -> None:
    """Ours, a library's, a warning; with level and time."""
    ours, theirs, warning = lines(
        "log.info('hello', group='g')\n"
        "logging.getLogger('asyncio').error('Task was destroyed')\n"
        "warnings.warn('old')\n"
    )
    assert (ours["event"], ours["group"], ours["level"]) == ("hello", "g", "info")
    assert (theirs["event"], theirs["level"], theirs["logger"]) == ("Task was destroyed", "error", "asyncio")
    assert "old" in warning["event"]
    assert all(line["timestamp"].endswith("Z") for line in (ours, theirs, warning))


def test_a_trace_has_no_values_of_variables() -> None:
    """Those are where the secrets are; in both forms."""
    script = (
        "def connect():\n"
        "    url = 'x' + 'y-hidden-' + 'z'\n"
        "    raise ValueError('no')\n"
        "try:\n    connect()\nexcept ValueError:\n    log.exception('failed', cause_id='c1')\n"
    )
    [line] = lines(script)
    assert line["exception"][0]["exc_type"] == "ValueError"
    assert line["cause_id"] == "c1"
    assert "xy-hidden-z" not in json.dumps(line)
    text = said(script, "text")
    assert "ValueError: no" in text
    assert "xy-hidden-z" not in text


def test_secrets_in_messages_fields_and_traces_are_hidden_in_both_forms() -> None:
    """Whatever a library has put into its own words."""
    script = (
        "url = 'postgresql://anna:' + 'hunter2' + '@db/herd'\n"
        "log.info('cannot reach ' + url, place=url, password='hunter2')\n"
        "logging.getLogger('driver').warning('cannot reach %s', url)\n"
        "try:\n    raise ConnectionError(url)\nexcept ConnectionError:\n    log.exception('failed')\n"
    )
    for form in ("json", "text"):
        told = said(script, form)
        assert "hunter2" not in told
        assert "anna" in told


def test_what_is_known_is_on_every_line_of_tasks_and_threads_begun_before() -> None:
    """A worker's parts are begun before it has joined; what a line says itself counts."""
    before, after, thread, own = lines(
        "open_scope(group='g')\n"
        "log.info('before')\n"
        "gate = threading.Event()\n"
        "def later():\n    gate.wait()\n    log.info('in a thread')\n"
        "thread = threading.Thread(target=in_scope(later))\n"
        "thread.start()\n"
        "know(member='w-1', generation=3, task=None)\n"
        "log.info('after')\n"
        "gate.set()\nthread.join()\n"
        "log.info('own', group='other')\n"
    )
    assert "member" not in before
    assert before["group"] == "g"
    for line in (after, thread):
        assert (line["group"], line["member"], line["generation"]) == ("g", "w-1", 3)
        assert "task" not in line
    assert own["group"] == "other"


def test_the_level_can_change_while_the_process_runs() -> None:
    """Loggers that were used before follow, and libraries' lines too."""
    told = lines(
        "log.debug('no')\n"
        "LEVEL.set('debug')\n"
        "log.debug('yes')\n"
        "LEVEL.set('error')\n"
        "log.warning('no')\n"
        "logging.getLogger('lib').warning('no')\n"
        "log.error('yes')\n"
    )
    assert [line["event"] for line in told] == ["yes", "yes"]


def test_a_level_that_is_none_changes_nothing() -> None:
    """And says which there are."""
    level = Level("warning")
    with pytest.raises(ValueError, match="level: must be one of debug, info, warning, error"):
        level.set("loud")
    assert level.name == "warning"
