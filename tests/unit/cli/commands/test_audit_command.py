"""`sparkherd audit`, against managers that say what a test wants."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from cli.commands import audit

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from tests.unit.cli.conftest import Run
    from tests.unit.cli.scripted_manager import ScriptedManager

DONE = {
    "id": 7,
    "at_ms": 1773561600123,
    "who": "me",
    "operation": "pauseTask",
    "result": "NONE",
    "token_id": "ab12",
    "group": "flights",
    "task": "delays",
    "status": 202,
}
REFUSED = DONE | {"id": 8, "result": "GROUP_AUTHORIZATION_FAILED", "why": "the token me has the role viewer"}


def listed(manager: ScriptedManager, query: str, following: int | None, *told: dict[str, Any]) -> None:
    manager.on("GET", f"/v1/audit?{query}", {"error": "NONE", "entries": told, "next": following})


def test_entries_are_shown_a_line_each(manager: ScriptedManager, sparkherd: Callable[..., Run]) -> None:
    """When, who, what, to what, and how it went."""
    listed(manager, "after=0&limit=1000", None, DONE, REFUSED)
    run = sparkherd("audit", "--manager", manager.url)
    assert run.code == 0
    first, second = run.out.splitlines()
    assert first.split()[0] == "7"
    assert first.endswith("  me  pauseTask  flights/delays  done")
    assert second.endswith("  GROUP_AUTHORIZATION_FAILED  the token me has the role viewer")


def test_all_pages_are_shown(
    manager: ScriptedManager, sparkherd: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As JSON, filtered by the manager, each page from where the one before ended."""
    monkeypatch.setattr(audit, "PAGE_LENGTH", 1)
    listed(manager, "group=flights&who=me&after=3&limit=1", 7, DONE)
    listed(manager, "group=flights&who=me&after=7&limit=1", None, REFUSED)
    args = ("--group", "flights", "--who", "me", "--after", "3", "--json")
    run = sparkherd("audit", "--manager", manager.url, *args)
    assert [json.loads(line) for line in run.out.splitlines()] == [DONE, REFUSED]
