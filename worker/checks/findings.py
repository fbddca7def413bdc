"""What a check has found, put together under the bounds of a result (protocol §5, Checks)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from protocol.messages.checks import (
    MAX_TYPE_LENGTH,
    MOST_COLUMNS,
    CheckedColumn,
    CheckResult,
)
from protocol.messages.errands import MAX_RESULT_BYTES, MAX_SAID_LENGTH, MOST_SAID
from protocol.messages.tasks import Problem
from telemetry.secrets import beginning, scrub
from worker.checks.values import json_row

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MOST_ROW_BYTES: Final = 262_144
"""Of all rows that are shown, as JSON."""


class Findings:
    """Of one check, as they come."""

    def __init__(self) -> None:
        self._problems: list[Problem] = []
        self._notes: list[Problem] = []
        self._columns: tuple[CheckedColumn, ...] | None = None
        self._rows: list[tuple[object, ...]] = []

    def problem(self, path: str, cause: str) -> None:
        """What has to be changed at a place in the definition; the first line of `cause` says why."""
        self._problems.append(_said(path, cause))

    def note(self, path: str, text: str) -> None:
        """What is worth knowing."""
        self._notes.append(_said(path, text))

    def columns(self, columns: Iterable[tuple[str, str]]) -> None:
        """Name and type of each."""
        told = [
            CheckedColumn(_cut(name, MAX_TYPE_LENGTH), _cut(kind, MAX_TYPE_LENGTH)) for name, kind in columns
        ]
        self._columns = tuple(told[:MOST_COLUMNS])
        if len(told) > MOST_COLUMNS:
            self.note("", f"{len(told)} columns are {len(told) - MOST_COLUMNS} more than are shown")

    def rows(self, rows: Iterable[Sequence[str | None]]) -> None:
        """Each value as `worker.checks.values` has it."""
        left = MOST_ROW_BYTES
        cut = 0
        for position, texts in enumerate(rows):
            row, values_cut = json_row(texts)
            left -= len(msgspec.json.encode(row))
            if left < 0:
                self.note("", f"the rows after the first {position} are left out: they are too large")
                break
            self._rows.append(row)
            cut += values_cut
        if cut:
            self.note("", f"{cut} long values are cut, and end with …")

    def result(self) -> CheckResult:
        """All of it, or as much as a result can hold."""
        whole = CheckResult(
            problems=tuple(self._problems[:MOST_SAID]),
            notes=tuple(self._notes[:MOST_SAID]),
            columns=self._columns,
            rows=tuple(self._rows),
        )
        if len(msgspec.json.encode(whole)) <= MAX_RESULT_BYTES:
            return whole
        return _without_rows(whole)


def _without_rows(whole: CheckResult) -> CheckResult:
    """What is wrong and worth knowing, of that as much as fits."""
    left_out = Problem("", "what is left out is too large to be shown")
    problems, notes = whole.problems, whole.notes[: MOST_SAID - 1]
    while True:
        result = CheckResult(problems=problems, notes=(*notes, left_out))
        if len(msgspec.json.encode(result)) <= MAX_RESULT_BYTES:
            return result
        problems, notes = problems[: -(-len(problems) // 2)], notes[: len(notes) // 2]


def _said(path: str, text: str) -> Problem:
    line = text.strip().partition("\n")[0]
    return Problem(_cut(path, MAX_SAID_LENGTH), _cut(line, MAX_SAID_LENGTH))


def _cut(text: str, at_most: int) -> str:
    """Without secrets, which are taken out before it is cut: half of one would not be known."""
    told = scrub(beginning(text))
    return told if len(told) <= at_most else told[: at_most - 1] + "…"
