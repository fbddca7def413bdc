"""Of rows with one key the last, as in the sink `sql`: what a MERGE is given, which takes none of several."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame


def in_order(frame: DataFrame) -> DataFrame:
    """The rows with one column more, the last one, which tells their order: partition by partition."""
    from pyspark.sql import functions as sql  # noqa: PLC0415 - the sinks' rules are loaded without Spark

    return frame.withColumn(_free(frame, "sparkherd_nth"), sql.monotonically_increasing_id())


def last_of_each_key(ordered: DataFrame, key: Sequence[str]) -> DataFrame:
    """What of the rows of `in_order` counts, without that column; NULL is a key as any other."""
    from pyspark.sql import Window  # noqa: PLC0415 - as above
    from pyspark.sql import functions as sql  # noqa: PLC0415 - as above

    nth, from_last = ordered.columns[-1], _free(ordered, "sparkherd_from_last")
    columns = [sql.expr("`" + name.replace("`", "``") + "`") for name in key]
    backwards = Window.partitionBy(*columns).orderBy(sql.col(nth).desc())
    ranked = ordered.withColumn(from_last, sql.row_number().over(backwards))
    return ranked.where(sql.col(from_last) == 1).drop(nth, from_last)


def _free(frame: DataFrame, name: str) -> str:
    """A name that no column of the frame has."""
    taken = {column.lower() for column in frame.columns}
    while name in taken:
        name += "_"
    return name
