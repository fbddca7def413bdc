from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from manager.core.coordinator import RULES
from tests.unit.manager.core.tables.outcomes import outcome
from tests.unit.manager.core.tables.requests import TABLES
from tests.unit.manager.core.tables.states import SCENES

if TYPE_CHECKING:
    from collections.abc import Iterator


def read(table: str) -> dict[str, dict[str, str]]:
    """Request to state to outcome: a line without indent names a request, indented ones what it meets."""
    rows: dict[str, dict[str, str]] = {}
    for line in (Path(__file__).parent / f"{table}.txt").read_text().splitlines():
        if line.startswith(" "):
            states, _, met = line.strip().partition(": ")
            rows[next(reversed(rows))] |= dict.fromkeys(states.split(", "), met.strip())
        elif line:
            rows[line] = {}
    return rows


def cells() -> Iterator[tuple[str, str, str, str]]:
    for table in TABLES:
        for request, row in read(table).items():
            for state, met in row.items():
                yield table, request, state, met


@pytest.mark.parametrize(("table", "request_name", "state", "met"), list(cells()))
def test_a_request_meets_in_each_state_what_the_table_says(
    table: str, request_name: str, state: str, met: str
) -> None:
    """The answer, the next state, the rows, and what those that waited are told (protocol §2 to §5)."""
    scene = SCENES[state]()
    assert outcome(scene, TABLES[table][request_name](scene)) == met


@pytest.mark.parametrize("table", TABLES)
def test_the_table_is_complete(table: str) -> None:
    """Every request of it in every state, and no other."""
    rows = read(table)
    assert list(rows) == list(TABLES[table])
    assert all(set(row) == set(SCENES) for row in rows.values())


def test_every_rule_is_in_a_table() -> None:
    """A new kind of request is tried in every state, or this fails."""
    asked = {
        type(make(scene()))
        for requests in TABLES.values()
        for make in requests.values()
        for scene in SCENES.values()
    }
    assert asked == set(RULES)
