"""Lines of flights, good and bad ones, and where they are afterwards."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

ONCE = {"available_now": True}
TABLE = "CREATE TABLE flights (id BIGINT PRIMARY KEY, carrier TEXT CHECK (carrier <> 'B6'), delay DOUBLE)"
KNOWN = {"name": "known", "where": "id >= 0", "on_violation": "quarantine"}
SMALL = {"name": "small", "where": "id < 1000", "on_violation": "drop"}
ASIDE = "SELECT reason, name, raw, origin FROM sparkherd_quarantine ORDER BY batch_id, nth"
SCHEMA = "id BIGINT, carrier STRING, delay DOUBLE"
LINES = [
    '{"id": 1, "carrier": "UA", "delay": 1.0}',
    '{"id": "one"}',
    '{"id": 2, "carrier": "B6", "delay": 1.0}',
    "no json",
    '{"id": -3, "carrier": "UA"}',
    '{"id": 1000, "carrier": "UA"}',
    '{"id": 4, "carrier": "UA"}',
    '{"id": -1000, "carrier": "AA", "delay": "NaN"}',
]
"""Good ones are 1 and 4; two cannot be read, two violate an expectation, one is dropped, one is refused."""


def source(folder: Path, *lines: str, **fields: Any) -> dict[str, Any]:
    """The section of a source that reads these lines, and more fields of it."""
    folder.mkdir(exist_ok=True)
    (folder / f"{len(list(folder.iterdir()))}.json").write_text("\n".join(lines) + "\n")
    return {"format": "json", "schema": SCHEMA, "options": {"path": str(folder)}, **fields}


def raw_rows(database: Any) -> list[tuple[str, str, str]]:
    """What is put aside in the sink's own database."""
    return [(reason, name, bytes(raw).decode()) for reason, name, raw, _ in database.query(ASIDE)]


def rows_in(folder: Path) -> list[dict[str, Any]]:
    """Of all files of JSON lines that Spark has written below it."""
    files = [file for file in folder.rglob("part-*.json") if file.name[0] != "_"]
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]
