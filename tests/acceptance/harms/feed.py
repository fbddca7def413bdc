"""What all tasks of a trial read: numbered rows, a small file of JSON at a time."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pathlib import Path

ROWS_A_FILE: Final = 20
FILES_A_BATCH: Final = 10
"""Of one batch at most: whoever is behind gets up to date, in batches that are still small."""


class Feed:
    """Rows are numbered from 0; a file appears at once and whole."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        self._files = 0

    @property
    def rows(self) -> int:
        """How many there are."""
        return self._files * ROWS_A_FILE

    @property
    def source(self) -> dict[str, Any]:
        """The source of a definition that reads them."""
        options = {"path": str(self.folder), "maxFilesPerTrigger": FILES_A_BATCH}
        return {"format": "json", "schema": "id BIGINT", "options": options}

    def add(self) -> None:
        """A file."""
        name, first = f"{self._files:06}.json", self.rows
        hidden = self.folder / f".{name}"
        lines = [json.dumps({"id": number}) for number in range(first, first + ROWS_A_FILE)]
        hidden.write_text("".join(f"{line}\n" for line in lines))
        hidden.rename(self.folder / name)
        self._files += 1
