from __future__ import annotations

from typing import Any

import pytest
import structlog

from telemetry.line_renderer import render_line

HEAD = {"timestamp": "2026-11-21T17:39:41.123456Z", "level": "info", "event": "audit"}


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"task": "t1", "group": "flights", "status": 201, "who": None, "is_ok": True},
        {"why": "no such file", "quoted": "it's", "pair": "a=b", "lines": "a\nb", "empty": ""},
        {"tasks": ["t1", "t2"], "offsets": {"a": 1}, "share": 0.5},
        {"level": "warning", "event": "an event that is longer than the thirty columns it has"},
        {"logger": "aiohttp.access", "task": "t1"},
        {"exception": "Traceback (most recent call last):\nValueError: no", "task": "t1"},
    ],
)
def test_a_line_reads_as_it_does_on_a_terminal(fields: dict[str, Any]) -> None:
    on_a_terminal = structlog.dev.ConsoleRenderer(colors=False)
    assert render_line(None, "info", {**HEAD, **fields}) == on_a_terminal(None, "info", {**HEAD, **fields})
