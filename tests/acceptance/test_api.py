"""What is asked of a manager by a program that has read nothing but its description."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.acceptance.api.run import run, start_manager

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.processes

SHORT = ("--generation-deterministic", "--phases", "examples,coverage,stateful", "--max-examples", "3")


@pytest.mark.timeout(900)  # on a busy machine it takes minutes, and none of it waits for anything
def test_the_manager_answers_as_its_description_says(tmp_path: Path) -> None:
    """Every check of schemathesis on every operation, the same requests each time; and no bug in the log."""
    manager = start_manager(tmp_path)
    try:
        found = run(manager, *SHORT)
        assert found.returncode == 0, found.stdout
        assert manager.terminate() == 0
        assert "Traceback" not in manager.log(), manager.log()
    finally:
        manager.stop()
