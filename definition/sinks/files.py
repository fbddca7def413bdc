"""The fenced file sink: folders of Parquet or JSON on a file system of POSIX."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta

from definition.reading import Constraint, Section
from definition.sinks.base import SinkFormat, Supports
from definition.values import nul_fault

if TYPE_CHECKING:
    from collections.abc import Mapping

FILES_SINK = "fenced_files"


def _folder_fault(path: str) -> str | None:
    """What is wrong with the folder of the fenced file sink."""
    if re.match(r"(?!file:/)[A-Za-z][A-Za-z0-9+.-]*:/", path):
        return "must be a folder that is mounted on workers and executors, not the URL of a store"
    return nul_fault(path) or (None if path.strip("/. ") else "must name a folder")


class FilesOptions(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of the fenced file sink."""

    path: Annotated[
        str,
        Constraint(_folder_fault),
        Meta(description="a folder on a file system that all workers and executors share"),
    ]
    format: Annotated[Literal["parquet", "json"], Meta(description="of the files")] = "parquet"


class FilesFormat(SinkFormat):
    """Folders of Parquet or JSON; each batch is one that is renamed into its place."""

    name = FILES_SINK
    options = FilesOptions
    supports = Supports(output_modes=("append",))
    writer = "worker.sinks.files:FilesSink"

    @property
    def needs(self) -> str | None:
        """Every worker has it."""
        return None

    def written_again(self, table: str | None, options: Mapping[str, Any]) -> str:
        """Beside what is there: a file is never changed."""
        del table
        return (
            f"The files in {options.get('path')} stay, and rows that are read again are written again:"
            " remove its folders before you resume the task, unless you want them twice."
        )
