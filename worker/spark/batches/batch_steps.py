"""What becomes of each batch of a query before its sink has it; travels to a Spark Connect server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from worker.spark.expectations import masked
from worker.spark.reading.unreadable import readable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from definition.expectations import Expectation
    from worker.sinks.base import Condition
    from worker.sinks.sifting import Sifting


class MakesResult(Protocol):
    """What a `Reading` does, or something in its place."""

    def result(self, frame: DataFrame) -> DataFrame:
        """Of the rows of a batch, as the source has them."""
        ...


@dataclass(frozen=True, slots=True)
class Reading:
    """How the rows of a batch that can be read become those of the result, where some cannot be.

    A row that cannot be read has to get past the SQL, so that is done in each batch. That gives what it gives
    in a stream if no row of the result is made of several of the source (`worker.spark.reading.row_wise`).

    Args:
        view: what SQL reads the rows as.
        sql: what it makes of them; None if they are the result.
        expect: what the result has to be like.
        conditions: what the sink asks of it.
    """

    view: str
    sql: str | None
    expect: tuple[Expectation, ...]
    conditions: tuple[Condition, ...] = ()

    def result(self, frame: DataFrame) -> DataFrame:
        """Of the rows of a batch, as the source has them."""
        good = readable(frame)
        if self.sql is not None:
            good.createOrReplaceTempView(self.view)
            good = frame.sparkSession.sql(self.sql)
        return masked(good, self.expect, self.conditions)


@dataclass(frozen=True, slots=True)
class BatchSteps:
    """All of it.

    Args:
        sifting: how rows are left out of the result; None if none are.
        reading: how the result comes about; None if the query's own plan has it.
        most: how many rows of a batch may be put aside.
        is_elsewhere: whether such rows have to be where they are put aside before the sink has others.
        conditions: those of the sink that rows are put aside by which do not meet them.
    """

    sifting: Sifting | None = None
    reading: MakesResult | None = None
    most: int = 0
    is_elsewhere: bool = False
    conditions: tuple[Condition, ...] = ()

    def __bool__(self) -> bool:
        """Whether there is anything to be done."""
        return self.sifting is not None or self.reading is not None


AS_IT_IS = BatchSteps()
