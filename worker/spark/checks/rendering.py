"""Rows of a check as texts, made where they are computed: what is shown of a value is not much."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as f

from protocol.messages.checks import MOST_COLUMNS
from worker.checks.values import MAX_LENGTH, TEXT, VALUE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from protocol.messages.checks import Begin

_IS_TEXT = re.compile(r"string|char|varchar")
_IS_NO_JSON = re.compile(r"\b(?:time\(|geometry|geography)")
"""Types that `to_json` of this Spark, or of an older one, knows nothing of."""
_FORMATS: Final = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
_OPENING, _CLOSING = '{"v":', "}"
_TAKEN: Final = MAX_LENGTH + 1
"""One character more than is shown says that there is more."""


def rendered(frame: DataFrame, rows: int, begin: Begin) -> Sequence[Sequence[str | None]]:
    """The first or the last rows, each value as `worker.checks.values` has it. Computes them.

    Args:
        frame: whatever it is.
        rows: how many at most.
        begin: from which end.
    """
    named = frame.toDF(*(f"c{position}" for position in range(len(frame.columns))))
    shown = named.dtypes[:MOST_COLUMNS]
    texts = named.select(*(_text(f.col(name), kind).alias(name) for name, kind in shown))
    found: list[Any] = texts.limit(rows).collect() if begin == "beginning" else texts.tail(rows)
    return [tuple(row) for row in found]


def _text(column: Column, kind: str) -> Column:
    if _IS_TEXT.match(kind):
        return f.concat(f.lit(TEXT), f.left(column, f.lit(_TAKEN)))
    if kind == "binary":
        return f.concat(f.lit(TEXT), f.left(f.base64(f.substring(column, 1, _TAKEN)), f.lit(_TAKEN)))
    if _IS_NO_JSON.search(kind):
        return f.concat(f.lit(TEXT), f.left(column.cast("string"), f.lit(_TAKEN)))
    return f.when(column.isNotNull(), f.concat(f.lit(VALUE), f.left(_json(column), f.lit(_TAKEN))))


def _json(column: Column) -> Column:
    whole = f.to_json(f.struct(column.alias("v")), _FORMATS)
    return f.substring(whole, len(_OPENING) + 1, 2**31 - 1 - len(_OPENING)).substr(
        f.lit(1), f.length(whole) - len(_OPENING) - len(_CLOSING)
    )
