"""What is shown of an engine's answer fits into a report, and says what it leaves out."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

import msgspec
import pytest

from protocol.messages.errands import MAX_RESULT_BYTES
from protocol.messages.quarantine import (
    MAX_NAME_LENGTH,
    MAX_RAW_LENGTH,
    QuarantineAnswer,
    QuarantineRequest,
    ReportQuarantineRequest,
)
from telemetry.secrets import SECRETS
from tests.unit.worker.quarantined_rows.rows import row
from worker.quarantined_rows.shown import MAX_LISTED_LENGTH, shown


def see(*rows: Any, action: Any = "list", masked: bool = False, **more: Any) -> QuarantineAnswer:
    """As the manager reads it."""
    request = QuarantineRequest(action=action, masked=masked, limit=100)
    told = shown(QuarantineAnswer(rows=rows, total=len(rows), **more), request)
    report = ReportQuarantineRequest(member_id="m", quarantine="q", result=told)
    read = msgspec.json.decode(msgspec.json.encode(report), type=ReportQuarantineRequest).result
    assert read == told
    return told


def test_a_list_has_the_beginning_of_long_rows() -> None:
    """And one that is shown by itself has more of it."""
    long = row(form="line", raw="a" * 100_000)
    told = see(long)
    assert (len(told.rows[0].raw) <= MAX_LISTED_LENGTH, told.rows[0].raw[-2:]) == (True, "a…")
    assert told.notes == ("1 long rows are cut to 2000 characters: show one to see more of it",)
    assert MAX_LISTED_LENGTH < len(see(long, action="show").rows[0].raw) <= MAX_RAW_LENGTH


def test_base64_that_is_cut_can_be_read() -> None:
    """It ends with a whole group of bytes."""
    raw = bytes(range(256)) * 100
    told = see(row(form="kafka", encoding="base64", raw=b64encode(raw).decode()))
    assert raw.startswith(b64decode(told.rows[0].raw, validate=True))


def test_rows_that_do_not_fit_are_left_out() -> None:
    """From the end, and it is said."""
    told = see(*[row(raw="ä" * 60_000)] * 30, action="show")
    assert 0 < len(told.rows) < 30
    assert told.total == 30
    assert told.notes[-1] == f"the rows after the first {len(told.rows)} are left out: they are too large"
    assert len(msgspec.json.encode(told)) < MAX_RESULT_BYTES


def test_whatever_an_engine_says_can_be_reported() -> None:
    """Names, errors, places and notes of any length."""
    long = "a b " * 10_000
    told = see(
        row(name=long, error=long, origin={f"{n}{long}": long for n in range(30)}), notes=(long,) * 300
    )
    assert len(told.notes) <= 100


@pytest.mark.parametrize("action", ["list", "show"])
def test_secrets_are_hidden_where_values_are_shown(action: str) -> None:
    """Also one that the cut goes through."""
    SECRETS.learn("hunter22-of-the-quarantine")
    raw = "x" * (MAX_LISTED_LENGTH - 20) + "hunter22-of-the-quarantine" + "y" * 100
    told = see(row(raw=raw, error="password=hunter22-of-the-quarantine"), action=action)
    assert "hunter22" not in repr(told)


def test_a_key_of_kafka_s_is_no_place() -> None:
    """Who may not see what is in a row is told where it lay, and nothing that came with it."""
    place = {"topic": "orders", "partition": 1, "offset": 7}
    came = row(form="kafka", origin={**place, "key": "aHVudGVyMg==", "headers": "aHVudGVyMg=="})
    assert see(came, masked=True).rows[0].origin == place
    assert see(came).rows[0].origin == came.origin


def test_no_more_rows_are_told_than_were_asked_for() -> None:
    """Whatever the engine brings."""
    request = QuarantineRequest(action="list", limit=2)
    assert len(shown(QuarantineAnswer(rows=(row(),) * 5, total=5), request).rows) == 2


def test_halves_of_characters_can_be_told() -> None:
    """JSON of a source may have them, UTF-8 has none."""
    assert see(row(form="line", raw="a\ud800", error="\udfff")).rows[0].raw == "a?"


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["a" * 99, "b" * 99], f"{'a' * 99}, {'b' * 99}"),
        (["a" * 100, "b" * 100], f"{'a' * 100}, …"),
        (["a" * 97, "b" * 98, "ccc"], f"{'a' * 97}, {'b' * 98}, …"),
        (["a" * 97, "b" * 99, "ccc"], f"{'a' * 97}, …"),
        (["a" * 300], f"{'a' * 199}…"),
    ],
)
def test_of_many_expectations_those_are_told_that_there_is_room_for(names: list[str], told: str) -> None:
    """Each as a whole, for half of one may be the name of another; that there are more can be seen."""
    answer = QuarantineAnswer(rows=(row(name=", ".join(names)),), total=1)
    [made] = shown(answer, QuarantineRequest(action="list")).rows
    assert made.name == told
    assert len(made.name) <= MAX_NAME_LENGTH
