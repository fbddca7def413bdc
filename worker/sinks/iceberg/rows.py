"""What is done with a batch's rows before they are merged into a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

_NTH: Final = "__sparkherd_nth"
_FROM_LAST: Final = "__sparkherd_from_last"


def kept_in_order(frame: DataFrame) -> DataFrame:
    """The rows, kept with their order in a column: MERGE reads its source twice."""
    from pyspark.sql import functions as sql  # noqa: PLC0415 - too heavy for whoever only loads sinks

    return frame.withColumn(_NTH, sql.monotonically_increasing_id()).localCheckpoint()


def last_of_each_key(kept: DataFrame, key: Sequence[str]) -> DataFrame:
    """Of rows with one key the last, partition by partition, as in the sink `sql`: MERGE refuses several."""
    from pyspark.sql import Window  # noqa: PLC0415 - the same
    from pyspark.sql import functions as sql  # noqa: PLC0415 - the same

    columns = [sql.col("`" + name.replace("`", "``") + "`") for name in key]
    backwards = Window.partitionBy(*columns).orderBy(sql.col(_NTH).desc())
    ranked = kept.withColumn(_FROM_LAST, sql.row_number().over(backwards))
    return ranked.where(sql.col(_FROM_LAST) == 1).drop(_NTH, _FROM_LAST)
