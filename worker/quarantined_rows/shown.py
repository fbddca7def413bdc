"""What of an engine's answer is shown: masked if need be, without secrets, under the bounds of a result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from protocol.messages.errands import MAX_RESULT_BYTES, MAX_SAID_LENGTH, MOST_SAID
from protocol.messages.quarantine import (
    MAX_NAME_LENGTH,
    MAX_ORIGIN_LENGTH,
    MAX_RAW_LENGTH,
    MOST_OF_ORIGIN,
)
from telemetry.secrets import SECRETS, scrub
from worker.masking import masked_bytes, masked_json, masked_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from protocol.messages.quarantine import QuarantineAnswer, QuarantinedRow, QuarantineRequest

_BETWEEN: Final = ", "
_MORE: Final = f"{_BETWEEN}…"
MAX_LISTED_LENGTH: Final = 2000
"""Characters of a row in a list; `show` has more."""
_PLACES: Final = frozenset({"topic", "partition", "offset", "timestamp", "timestampType", "file", "line"})
"""What is said of where a row came from that is nothing of the row: its key and headers are."""
MOST_ROW_BYTES: Final = MAX_RESULT_BYTES // 2
"""Of all rows together, as JSON: notes are to fit beside them."""


def shown(answer: QuarantineAnswer, request: QuarantineRequest) -> QuarantineAnswer:
    """`answer` as it may leave the worker.

    What is too long is cut, and the rows at its end are left out; notes say so.
    """
    most = MAX_LISTED_LENGTH if request.action == "list" else MAX_RAW_LENGTH
    notes = [scrub(note, MAX_SAID_LENGTH) for note in answer.notes[: MOST_SAID - 2]]
    rows_asked = [_short(row, most) for row in answer.rows[: request.limit]]
    told = [_told(masked_row(row) if request.masked else row, most) for row in rows_asked]
    if cut := sum(is_cut for _, is_cut in told):
        more = ": show one to see more of it" if request.action == "list" else ""
        notes.append(f"{cut} long rows are cut to {most} characters{more}")
    rows = _fitting(row for row, _ in told)
    if len(rows) < len(told):
        notes.append(f"the rows after the first {len(rows)} are left out: they are too large")
    return msgspec.structs.replace(answer, rows=tuple(rows), notes=tuple(notes))


def _short(row: QuarantinedRow, most: int) -> QuarantinedRow:
    """Not much more of a row than is shown: to mask all of a large one takes seconds."""
    return msgspec.structs.replace(row, raw=row.raw[: most + 4], error=row.error[: MAX_SAID_LENGTH + 1])


def masked_row(row: QuarantinedRow) -> QuarantinedRow:
    """The row with nothing in it that was in the data: what it was, and what the error quotes of it.

    Where it lay, and what it is counted under, stays. Of a `row`, the names of its columns do as well.
    """
    mask_text = masked_json if row.form == "row" else masked_text
    mask = masked_bytes if row.encoding == "base64" else mask_text
    origin = {name: value for name, value in row.origin.items() if name in _PLACES}
    return msgspec.structs.replace(
        row, raw=mask(row.raw), encoding="utf-8", error=masked_text(row.error), origin=origin
    )


def _fitting(rows: Iterable[QuarantinedRow]) -> list[QuarantinedRow]:
    left, found = MOST_ROW_BYTES, []
    for row in rows:
        left -= len(msgspec.json.encode(row))
        if left < 0:
            break
        found.append(row)
    return found


def _told(row: QuarantinedRow, most: int) -> tuple[QuarantinedRow, bool]:
    """The row under the bounds of a message, and whether its text is cut; what was base64 stays that."""
    row = msgspec.structs.replace(row, raw=_writable(row.raw), error=_writable(row.error))
    is_cut = len(row.raw) > most
    raw = SECRETS.hide(row.raw) if not is_cut else SECRETS.hide_cut(row.raw[:most])[: most - 4]
    if is_cut:
        raw = raw[: len(raw) // 4 * 4] if row.encoding == "base64" else raw + "…"
    row = msgspec.structs.replace(
        row,
        raw=raw[:most],
        name=_names(row.name),
        error=scrub(row.error, MAX_SAID_LENGTH),
        origin=dict(map(_place, list(row.origin.items())[:MOST_OF_ORIGIN])),
    )
    return row, is_cut


def _names(names: str) -> str:
    """What a row is called by; of the expectations that it violates as many whole names as there is room for.

    Half a name could be that of another one.
    """
    if len(names) <= MAX_NAME_LENGTH:
        return names
    whole = names[: MAX_NAME_LENGTH - len(_MORE) + len(_BETWEEN)].rpartition(_BETWEEN)[0]
    return f"{whole}{_MORE}" if whole else f"{names[: MAX_NAME_LENGTH - 1]}…"


def _writable(text: str) -> str:
    """Halves of characters, which UTF-8 has none of, are a `?`."""
    return text.encode(errors="replace").decode()


def _place(item: tuple[str, Any]) -> tuple[str, Any]:
    key, value = item
    return key[:MAX_NAME_LENGTH], scrub(value, MAX_ORIGIN_LENGTH) if isinstance(value, str) else value
