"""What the soak's tasks read: numbered rows as files of JSON, some with bad lines, and in Kafka."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kafka.topic import Topic

ROWS_A_FILE: Final = 100
KEYS: Final = 7
"""Of the rows, in turn."""
BAD_OF_A_FILE: Final = 2
"""Lines of a spoilt file that are no row."""
BEGIN: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""The time of the row 0; each is a second after the one before."""


class Feed:
    """A portion is a file in each folder and as many records in the topic; files appear at once and whole."""

    def __init__(self, folder: Path, topic: Topic) -> None:
        self.clean, self.spoilt = folder / "clean", folder / "spoilt"
        for each in (self.clean, self.spoilt):
            each.mkdir(parents=True)
        self._topic = topic
        self.portions = 0

    @property
    def rows(self) -> int:
        """How many there are, numbered from 0."""
        return self.portions * ROWS_A_FILE

    @property
    def bad(self) -> int:
        """Lines in the spoilt folder that are no row."""
        return self.portions * BAD_OF_A_FILE

    def add(self) -> None:
        """A portion."""
        first = self.rows
        lines = [line(number) for number in range(first, first + ROWS_A_FILE)]
        self._put(self.clean, lines)
        self._put(self.spoilt, [*lines, *["no row"] * BAD_OF_A_FILE])
        self._topic.produce([each.encode() for each in lines])
        self.portions += 1

    def _put(self, folder: Path, lines: list[str]) -> None:
        name = f"{self.portions:06}.json"
        hidden = folder / f".{name}"
        hidden.write_text("".join(f"{each}\n" for each in lines))
        hidden.rename(folder / name)


def line(number: int) -> str:
    """The row of that number."""
    at = (BEGIN + timedelta(seconds=number)).isoformat().replace("+00:00", "Z")
    return json.dumps({"id": number, "name": f"k{number % KEYS}", "at": at})
