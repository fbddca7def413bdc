"""The file of an SQLite database: is it still where it was?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from manager.storage.database import Database


@dataclass(frozen=True, slots=True)
class DatabaseFile:
    """A file as it was opened; SQLite itself goes on writing to one that was removed."""

    path: Path
    identity: tuple[int, int]

    def check(self) -> None:
        """Make sure that whoever opens the path finds what was written.

        Raises:
            OSError: the file is gone, or another one is in its place.
        """
        if _identity(self.path) != self.identity:
            raise OSError(f"{self.path} was replaced by another file; restart the manager to use that one")


def file_of(database: Database) -> DatabaseFile | None:
    """The file of a database that has been opened; None for servers and databases in memory."""
    path = database.path
    return None if path is None else DatabaseFile(path, _identity(path))


def _identity(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino
