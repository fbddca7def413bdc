"""What does not go with `on_error: quarantine` where each line of a file is a row (protocol §6)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from definition.reading import readable
from definition.source import BY_LINES
from protocol.messages.tasks import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from definition.document import Definition
    from definition.source import Source


def source_faults(source: Source) -> Iterator[Problem]:
    """Where a row is no line of its own, or cannot be told from the others."""
    if not readable(source.format, source.options, source.schema) or source.format is None:
        return
    if source.watermark is not None:
        yield Problem("watermark", "does not go with on_error: quarantine, which takes no state")
    if _CLASS.fullmatch(source.format):
        short = "csv" if "csv" in source.format.lower() else "json"
        yield Problem("format", f"is a class of Spark's: write {short}, with on_error: quarantine")
    if source.format.lower() not in BY_LINES:
        return
    given = {name.lower(): value for name, value in source.options.items()}
    if source.schema is None:
        yield Problem("schema", "is required with on_error: quarantine: by it rows are told that do not fit")
    alone = _NOT_BY_LINES | (_NOT_OF_JSON if source.format.lower() == "json" else {})
    for name, why in alone.items():
        value = given.get(name.lower())
        if value is not None and str(value).lower() not in _HARMLESS.get(name, frozenset()):
            yield Problem(f"options.{name}", f"does not go with on_error: quarantine: {why}")


_CLASS = re.compile(
    r"org\.apache\.spark\.sql\.(?:[a-z0-9]+\.)*(?:json|csv)(?:\.\w+)?|com\.databricks\.spark\.csv(?:\.\w+)?",
    re.IGNORECASE,
)
"""Names by which Spark takes its own JSON and CSV, besides the short ones."""
_NOT_BY_LINES = {
    "multiLine": "a row has to be a line, to be put aside by itself",
    "columnNameOfCorruptRecord": "what cannot be read goes to the quarantine",
    "mode": "it says what becomes of rows that cannot be read",
    "singleVariantColumn": "in a row of one variant, nobody finds what does not fit",
}
"""Options of files that cannot stand beside it."""
_UTF_8 = "a line of JSON is put aside byte for byte, and so must be UTF-8"
_NOT_OF_JSON = {
    "allowComments": "behind a comment, nobody finds another object",
    "encoding": _UTF_8,
    "charset": _UTF_8,
}
"""Of files of JSON, besides."""
_HARMLESS: dict[str, frozenset[str]] = {
    **dict.fromkeys(("encoding", "charset"), frozenset({"utf-8", "utf8"})),
    **dict.fromkeys(("multiLine", "allowComments"), frozenset({"false"})),
}
"""Values that change nothing, in small letters; of the others each one does."""

_NO_HIDDEN = (
    "must not name _metadata of {view} with on_error: quarantine: when sql sees a line its file is not known"
    " any more; of a row that is put aside it is in origin"
)
_NO_FUNCTION = (
    "calls {name}, which does not go with on_error: quarantine: when sql sees a line its file is not known"
    " any more; of a row that is put aside it is in origin"
)


def file_faults(definition: Definition, view: str, source: Source) -> Iterator[Problem]:
    """What Spark knows of a row only while it reads the row's file, where the texts of SQL ask for it.

    Args:
        definition: the task.
        view: what its SQL calls the source.
        source: of files of lines, the one that streams.
    """
    from definition.sql.hidden import METADATA, calls_it, columns, makes_it  # noqa: PLC0415 - not for readers
    from definition.sql.volatile import file_function  # noqa: PLC0415 - the same

    schema, sql = (text if readable(text) else None for text in (source.schema, definition.sql))
    is_column = METADATA in columns(schema or "")
    texts = [("sql", sql, is_column)]
    is_column = is_column or makes_it(sql or "")
    texts += [(f"expect[{at}].where", each.where, is_column) for at, each in enumerate(definition.expect)]
    for path, text, is_free in texts:
        if text is None or not readable(text):
            continue
        if not is_free and calls_it(text, view):
            yield Problem(path, _NO_HIDDEN.format(view=view))
        if name := file_function(text):
            yield Problem(path, _NO_FUNCTION.format(name=name))
