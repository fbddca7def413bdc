"""By what rows are counted that a definition may leave out."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest

from definition.document import parse_definition
from definition.expectations import RESERVED
from definition.left_out import REFUSED, UNREADABLE, Reasons, reasons_in, reasons_of
from worker.sinks.aside import Reason

KNOWN = {"name": "known", "where": "delay IS NOT NULL"}
SANE = {"name": "sane", "where": "delay < 10000", "on_violation": "drop"}
LATE = {"name": "late", "where": "delay > 0", "on_violation": "quarantine"}
SOURCE = {"format": "json", "schema": "delay INT", "options": {"path": "/in"}}
SQL = {"format": "sql", "options": {"url": "sqlite:///out.db", "table": "t"}}
DELTA = {"format": "delta", "options": {"path": "/out"}}
ASIDE = {"format": "delta", "options": {"path": "/aside"}}
FILES = {"format": "fenced_files", "options": {"path": "/out", "format": "json"}}


@pytest.mark.parametrize(
    ("parts", "reasons"),
    [
        ({"sink": SQL}, Reasons()),
        ({"sink": SQL, "expect": [KNOWN]}, Reasons()),
        ({"sink": SQL, "expect": [KNOWN, LATE, SANE]}, Reasons(("sane",), ("late",))),
        ({"sink": SQL, "on_error": "quarantine"}, Reasons((), ("unreadable", "refused"))),
        (
            {"sink": DELTA, "on_error": "quarantine", "quarantine": ASIDE, "expect": [LATE]},
            Reasons((), ("late", "unreadable", "refused")),
        ),
        ({"sink": FILES, "on_error": "quarantine", "quarantine": ASIDE}, Reasons((), ("unreadable",))),
        ({"sink": DELTA, "quarantine": ASIDE, "expect": [LATE]}, Reasons((), ("late",))),
    ],
)
def test_what_fails_a_batch_leaves_nothing_out_and_files_refuse_no_row(
    parts: dict[str, Any], reasons: Reasons
) -> None:
    """The manager reads the same off the document as the worker does off the whole definition."""
    document = json.dumps({"source": SOURCE, **parts}).encode()
    assert reasons_of(parse_definition(document)) == reasons
    assert reasons_in(document) == reasons


@pytest.mark.parametrize("document", [b'{"expect": {"a": 1}}', b'{"sink": "x"}', b'{"expect": [{}]}'])
def test_a_definition_of_another_version_leaves_out_nothing_that_is_known(document: bytes) -> None:
    """Whoever reads it here has something else to do than to fail over it."""
    assert reasons_in(document) == Reasons()


def test_rows_are_counted_by_what_is_announced() -> None:
    """Series at 0 that never grow beside others that begin with an event would help nobody."""
    assert {UNREADABLE, REFUSED} == RESERVED == {*get_args(Reason)} - {"violation"}
