"""What is made of the frame of each batch, analysed by Spark once a query and not once a batch.

To make a view of a frame, and SQL of that, has Spark analyse it several times over: tens of milliseconds in
the thread that a batch waits for. Each batch has the same columns. So the plan that was made for the first
one is taken for a later one with that one's rows in it, as Spark itself does with the plan of a stream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from worker.spark.batches.batch_steps import MakesResult

_ROWS: Final = "LogicalRDD"
"""The node of a plan that stands for the rows of a batch, as Spark hands them over."""
_COLUMNS: Final = "output"
_NAMES: Final = frozenset({"SubqueryAlias", "View"})
"""Nodes that give names to what is below them, which nobody asks for any more in a plan that is analysed."""


class ReusedReading:
    """Does what another does; for the batches of one query, one after the other.

    Not every plan is kept: one may be another each time that it is made, as a random number's seed is, or
    read something besides, whose state is looked at when it is made.
    """

    def __init__(self, reading: MakesResult) -> None:
        """`reading` is asked for the first batch, and for all if its plan is not kept."""
        self._reading = reading
        self._rows: _Rows | None = None
        self._above: list[tuple[Any, Any]] | None = None

    def begun(self, frame: DataFrame) -> DataFrame:
        """The frame of a batch; comes before anything is made of it."""
        plan = _execution(frame).logical()
        if self._above is None:
            is_of_rows = str(plan.getClass().getSimpleName()) == _ROWS
            self._rows = _Rows(plan, frame.sparkSession) if is_of_rows else None
        elif self._above and self._rows is not None and self._rows.are_like(plan):
            return _frame(self._rows.replaced(plan), frame.sparkSession)
        return frame

    def result(self, frame: DataFrame) -> DataFrame:
        """Of a frame that was begun, or of one with its columns that was made of it."""
        below = _execution(frame).analyzed()
        if self._above and self._rows is not None and self._rows.have_columns_of(below):
            return _frame(_with(self._above, below), frame.sparkSession)
        result = self._reading.result(frame)
        if self._above is None:
            self._above = _kept(_execution(result).analyzed(), below)
        return result


class _Rows:
    """The rows of the first batch whose plan is kept, in whose columns those of others are put into it."""

    def __init__(self, plan: Any, session: SparkSession) -> None:
        self._columns, self._schema = plan.output(), plan.schema()
        names = [str(plan.productElementName(at)) for at in range(plan.productArity())]
        self._columns_at = names.index(_COLUMNS)
        jvm: Any = session._jvm  # noqa: SLF001 - where PySpark keeps it
        self._any = jvm.scala.reflect.ClassTag.Object()

    def are_like(self, plan: Any) -> bool:
        """Whether those of another batch can be put there."""
        return bool(plan.schema().equals(self._schema))

    def replaced(self, plan: Any) -> Any:
        """`plan`, in the columns of the first batch.

        All else that Spark knows of rows is of their own batch: how many parts they come in, whether those
        of one key are in one part, how many bytes they have, and what is true of each. By what is said of
        another's, Spark leaves out shuffles and filters.
        """
        parts = plan.productIterator().toArray(self._any)
        parts[self._columns_at] = self._columns
        return plan.makeCopy(parts)

    def have_columns_of(self, plan: Any) -> bool:
        """Whether it has the columns of the first batch, and not others by the same names."""
        return bool(plan.output().equals(self._columns))


def _kept(plan: Any, below: Any) -> list[tuple[Any, Any]]:
    """The nodes of a plan from its root down to what it is made of, each with its children, which are one.

    None if it is not to be kept.
    """
    above: list[tuple[Any, Any]] = []
    if not plan.deterministic() or plan.collectLeaves().size() != 1 or plan.subqueriesAll().size() != 0:
        return above
    while not plan.fastEquals(below):
        children = plan.children()
        if children.size() != 1:
            return []
        child = children.apply(0)
        is_name = str(plan.getClass().getSimpleName()) in _NAMES
        if not is_name or not plan.outputSet().equals(child.outputSet()):
            above.append((plan, children))
        plan = child
    return above


def _with(above: list[tuple[Any, Any]], plan: Any) -> Any:
    for node, children in reversed(above):
        plan = node.withNewChildren(children.updated(0, plan))
    return plan


def _execution(frame: DataFrame) -> Any:
    java: Any = frame._jdf  # noqa: SLF001 - where PySpark keeps it
    return java.queryExecution()


def _frame(plan: Any, session: SparkSession) -> DataFrame:
    jvm: Any = session._jvm  # noqa: SLF001 - where PySpark keeps it
    java: Any = session._jsparkSession  # noqa: SLF001 - likewise
    return ClassicDataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(java, plan), session)
