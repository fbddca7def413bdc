"""How the rows of a batch go to those there: beside them, by key in their place, or in place of all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Meta

from definition.reading import Section
from protocol.messages.tasks import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_WHOLE_AGAIN = (
    "must be append or update with sink.options.mode append: each batch of complete has the whole result"
    " again; give the sink mode {whole}"
)
_PARTS_ONLY = "must be complete with sink.options.mode overwrite: other batches have only what is new"


MODE = Meta(description="append puts rows beside those there; upsert replaces by key; overwrite replaces all")
KEY = Meta(description="with mode upsert: the columns that identify a row")
MERGE_SCHEMA = Meta(description="adds columns to the table that the query has and it lacks")


class ModeOptions(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the options of such a format begin with; each says which modes it has."""

    mode: str = "append"
    key: tuple[str, ...] = ()

    def faults(self) -> Iterator[Problem]:
        """An upsert needs to know which row is the same row."""
        if self.mode == "upsert" and self.key == ():
            yield Problem("key", "is required with mode upsert: the columns that identify a row")
        if self.mode in {"append", "overwrite"} and self.key:
            yield Problem("key", "goes with mode upsert only")
        if self.key and len({column.lower() for column in self.key}) < len(self.key):
            yield Problem("key", "names a column twice")


def mode_fault(options: Mapping[str, Any], output_mode: str, whole: str) -> str | None:
    """Why rows of a query with this output mode cannot be right in this mode.

    Args:
        options: with `mode`, as they are written.
        output_mode: the query's.
        whole: what a person may give the sink for results that come as a whole.
    """
    mode = options.get("mode", "append")
    if mode == "append" and output_mode == "complete":
        return _WHOLE_AGAIN.format(whole=whole)
    return _PARTS_ONLY if mode == "overwrite" and output_mode != "complete" else None


def rows_written_again(place: object, options: Mapping[str, Any]) -> str:
    """What becomes of the rows in `place`, and of those that are read again, when a task is reset."""
    stay = f"The rows in {place} stay"
    if options.get("mode") == "overwrite":
        return f"{stay} until the first batch, which takes their place."
    if options.get("mode") == "upsert":
        return f"{stay}, and rows that are read again replace them by key ({', '.join(options['key'])})."
    return (
        f"{stay}, and rows that are read again are written again: delete them before you resume the task,"
        " when its status shows no cause, unless you want them twice."
    )
