"""What a definition expects of its rows, checked in the plan of its query (`expect`, protocol §6).

A row is looked at once, where it is computed. What violates an expectation whose rows are left out gets a
bit in one more column, the *mask* (`worker.sinks.sifting`), and is taken out on its way into the sink.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.errors import AnalysisException
from pyspark.sql import functions as f

from worker.query_engine import QueryError
from worker.sinks.sifting import MASK, Sifting
from worker.spark.causes import describe
from worker.spark.progress import ALL_LEFT_OUT, OBSERVED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from definition.expectations import Expectation
    from worker.sinks.base import Condition, Field
    from worker.spark.reading.reader import SqlSession

_MICROS: Final = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""By itself, Spark cuts times to milliseconds in JSON."""
VIOLATED: Final = "is violated by a row"
"""What the error of a row says that fails its batch, and by which its cause is known."""


def sifting(
    expect: Sequence[Expectation],
    fields: Sequence[Field],
    most: int = 0,
    conditions: Sequence[Condition] = (),
) -> Sifting | None:
    """How rows are left out of a result by its mask; None if none are.

    Args:
        expect: of its definition.
        fields: its columns, without the mask.
        most: how many rows of a batch may be put aside.
        conditions: those of the sink that have a bit.
    """
    ours = [each for each in expect if each.sifts]
    if not ours and not conditions:
        return None
    refusing = sum(1 << len(ours) + at for at in range(len(conditions)))
    names = [each.name for each in ours] + [each.name for each in conditions]
    wheres = [each.where for each in ours] + [each.where for each in conditions]
    return Sifting(
        names=tuple(names),
        quarantined=sum(1 << at for at, each in enumerate(ours) if each.is_quarantined) | refusing,
        wheres=tuple(wheres),
        most=most,
        columns=tuple(field.name for field in fields),
        kinds=tuple(str(field.type) for field in fields),
        refusing=refusing,
    )


def expected(session: SqlSession, frame: DataFrame, expect: Sequence[Expectation]) -> DataFrame:
    """The frame, of which a row that is to fail its batch does so; with its mask, if rows may be left out.

    Args:
        session: the query's, or a check's.
        frame: the query's result.
        expect: of its definition.

    Raises:
        QueryError: a condition is none, names a column that there is not, or does what no task's SQL may do.
    """
    for at, each in enumerate(expect):
        _require_condition(session, frame, each, f"expect[{at}].where")
    return masked(frame, expect)


def masked(
    frame: DataFrame, expect: Sequence[Expectation], conditions: Sequence[Condition] = ()
) -> DataFrame:
    """As `expected`, of conditions that were looked at before; with those of the sink in the mask."""
    for at, each in enumerate(expect):
        if not each.sifts:
            frame = frame.where(_or_fail(each, at))
    bits = [_bit(each.where, at) for at, each in enumerate(each for each in expect if each.sifts)]
    return with_conditions(frame.withColumn(MASK, _sum(bits)) if bits else frame, conditions, len(bits))


def with_conditions(frame: DataFrame, conditions: Sequence[Condition], first: int) -> DataFrame:
    """The frame with bits of conditions in its mask, which it may not have yet.

    Only in rows that violate no expectation: of others the sink would never see one.

    Args:
        frame: with the mask of expectations, if there are any.
        conditions: the sink's.
        first: the number of the first bit.
    """
    if not conditions:
        return frame
    refused = _sum([_bit(each.where, at) for at, each in enumerate(conditions, first)])
    if first == 0:
        return frame.withColumn(MASK, refused)
    return frame.withColumn(MASK, f.when(f.col(MASK) == f.lit(0), refused).otherwise(f.col(MASK)))


def without_violations(frame: DataFrame) -> DataFrame:
    """The rows with a mask that violate nothing, as Spark sees them, and without it."""
    return frame.where(f.col(MASK) == f.lit(0)).drop(MASK)


def counts(sifting: Sifting) -> list[Column]:
    """How many rows with a mask there are, for an observation: in all, by expectation, and put aside."""
    aside = f.col(MASK).bitwiseAND(f.lit(sifting.quarantined)) != f.lit(0)
    of_each = [
        f.count(f.when(f.col(MASK).bitwiseAND(f.lit(bits)) != f.lit(0), 1)).alias(str(at))
        for at, (_, bits) in enumerate(sifting.counted)
    ]
    return [
        f.count(f.lit(1)).alias("rows"),
        f.count(f.when(f.col(MASK) != f.lit(0), 1)).alias("left_out"),
        f.count(f.when(aside, 1)).alias("aside"),
        *of_each,
    ]


def dropped_by_spark(frame: DataFrame, sifting: Sifting) -> DataFrame:
    """A stream without the rows that violate something, which Spark counts for its record of each batch."""
    of_each = [
        f.count(f.when(f.col(MASK).bitwiseAND(f.lit(1 << at)) != f.lit(0), 1)).alias(name)
        for at, name in enumerate(sifting.names)
    ]
    all_rows = f.count(f.when(f.col(MASK) != f.lit(0), 1)).alias(ALL_LEFT_OUT)
    return without_violations(frame.observe(OBSERVED, all_rows, *of_each))


def violating(frame: DataFrame, sifting: Sifting) -> DataFrame:
    """The rows with a mask that are put aside: their masks, and themselves as JSON."""
    columns = [f.col(f"`{name.replace('`', '``')}`") for name in frame.columns if name != MASK]
    chosen = frame.where(f.col(MASK).bitwiseAND(f.lit(sifting.quarantined)) != f.lit(0))
    return chosen.select(f.col(MASK), f.to_json(f.struct(*columns), _MICROS).alias("row"))


def _require_condition(session: SqlSession, frame: DataFrame, each: Expectation, path: str) -> None:
    """By itself, and not in a query that would be whole with it: what is looked at is what is run."""
    try:
        session.require_query(f"SELECT 1 WHERE (\n{each.where}\n)")
        condition = f.expr(each.where)
        _analysed(frame.where(condition))
        _analysed(frame.select(condition))
    except (AnalysisException, QueryError) as error:
        cause = error.cause if isinstance(error, QueryError) else describe(error)
        raise QueryError.at(path, cause, permanent=True) from error


def _analysed(frame: DataFrame) -> None:
    """WHERE takes no aggregates and no other types, SELECT no subqueries of some kinds."""
    frame.schema  # noqa: B018 - the question is what it raises


def _or_fail(each: Expectation, at: int) -> Column:
    """True, or an error: Spark computes that only for rows that are not to come through."""
    told = f.lit(f"expect[{at}]: {each.name} {VIOLATED}: {each.where}")
    return f.when(f.expr(each.where), f.expr("true")).otherwise(f.raise_error(told).cast("boolean"))


def _bit(where: str, at: int) -> Column:
    """What is not true is a violation, also where it is NULL."""
    return f.when(f.expr(where), f.lit(0).cast("bigint")).otherwise(f.lit(1 << at).cast("bigint"))


def _sum(bits: Sequence[Column]) -> Column:
    total = bits[0]
    for bit in bits[1:]:
        total += bit
    return total
