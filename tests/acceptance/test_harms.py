"""What one task does to those beside it: nothing with a JVM for each, else nothing that lasts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.acceptance.harms.catalogue import HARMS
from tests.acceptance.harms.report import is_right, told
from tests.acceptance.harms.run import trial
from tests.integration.postgres import running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.spark, pytest.mark.processes, pytest.mark.timeout(1800)]

PATIENCE = 4.0
"""No test fails because its machine is slow."""


@pytest.fixture
def postgres() -> Iterator[str]:
    """Half of the neighbours write there."""
    with running() as server:
        yield server.url


@pytest.mark.parametrize(
    ("harm", "isolate", "cause"),
    [
        pytest.param(
            *("oom", True, "the JVM of this task ran out of memory (Java heap space)"),
            marks=pytest.mark.by_hand,
        ),
        ("python", False, "PythonException: MemoryError"),
    ],
)
def test_the_neighbours_on_its_worker_go_on(
    tmp_path: Path, postgres: str, harm: str, cause: str, *, isolate: bool
) -> None:
    """Out of memory in a JVM of its own, or in Python's processes: it is FAILED, nobody else started anew."""
    outcome = trial(
        *(tmp_path, postgres, harm),
        isolate=isolate,
        good=2,
        workers=["anna"],
        seconds=3.0,
        patience=PATIENCE,
        restart=False,
    )
    assert is_right(outcome), told(outcome)
    assert (outcome.fate.cause or "").startswith(cause)
    assert not outcome.restarted
    assert not outcome.deaths
    assert set(outcome.ended_jvms) <= {"harmful"}


@pytest.mark.by_hand
@pytest.mark.parametrize("isolate", [False, True])
@pytest.mark.parametrize("harm", [name for name in HARMS if name != "leak"])
def test_a_herd_gets_over_any_harm(tmp_path: Path, postgres: str, harm: str, *, isolate: bool) -> None:
    """All neighbours run, their rows are there once, and the harmful task stays where it has come to."""
    outcome = trial(tmp_path, postgres, harm, isolate=isolate, patience=PATIENCE)
    assert is_right(outcome), told(outcome)
