"""The conditions of a sink that a query's plan can look at, with its expectations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.errors import AnalysisException
from pyspark.sql import functions as f

from definition.sql.volatile import volatile_function
from worker.sinks.base import Condition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

MOST_BITS: Final = 63
"""Of a mask: a BIGINT that is not negative."""


def usable(frame: DataFrame, conditions: Sequence[Condition], taken: int) -> tuple[Condition, ...]:
    """Those that Spark can tell of the rows of a frame, and that come out the same of a row each time.

    Rows that do not meet the others have their batch refused, as without `on_error: quarantine`.

    Args:
        frame: the query's result.
        conditions: the sink's.
        taken: how many bits of the mask are others'.
    """
    lasting = [each for each in conditions if volatile_function(each.where) is None]
    known = lasting if _are_known(frame, lasting) else [each for each in lasting if _are_known(frame, [each])]
    return joined(known, MOST_BITS - taken)


def joined(conditions: Sequence[Condition], most: int) -> tuple[Condition, ...]:
    """As many as there is room for: those that there is none for are one."""
    if len(conditions) <= most:
        return tuple(conditions)
    first, rest = conditions[: most - 1], conditions[most - 1 :]
    one = Condition(
        " or ".join(each.name for each in rest), " AND ".join(f"(\n{each.where}\n)" for each in rest)
    )
    return (*first, one)


def _are_known(frame: DataFrame, conditions: Sequence[Condition]) -> bool:
    """Whether the frame has all that they are about."""
    try:
        for each in conditions:
            frame = frame.where(f.expr(each.where))
        frame.schema  # noqa: B018 - the question is what it raises
    except AnalysisException:
        return False
    return True
