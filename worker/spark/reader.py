"""The first half of a declarative definition: its source and its SQL as a streaming DataFrame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from py4j.java_gateway import is_instance_of

from worker.executor import StartError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

    from protocol.definition import Definition, Source

VIEW = "source"
_PLANS = "org.apache.spark.sql.catalyst.plans.logical"
_COMMANDS = ("Command", "ParsedStatement")
_EXECUTED = {"UnresolvedExecuteImmediate", "Call", "InsertIntoDir"}
"""What Spark executes too, though it is neither of the two before it is analysed."""


def read(session: SparkSession, definition: Definition) -> DataFrame:
    """The rows the task yields; nothing is read yet but what Spark needs to know the columns.

    Raises:
        StartError: the SQL is no query, or does not read the source, so that nothing would ever stream.
    """
    if definition.source is None:
        raise StartError("source: is required, unless there is an entrypoint")
    frame = load(session, definition.source)
    if definition.sql is None:
        return frame
    frame.createOrReplaceTempView(VIEW)
    require_query(session, definition.sql)
    result = session.sql(definition.sql)
    if not result.isStreaming:
        raise StartError(f"sql: does not read the view `{VIEW}`, so there is nothing to stream")
    return result


def require_query(session: SparkSession, text: str) -> None:
    """Refuse all but queries, before `session.sql` would execute them.

    Raises:
        StartError: it is a statement of another kind, or it holds one.
        ParseException: it does not parse.
    """
    java: Any = session._jsparkSession  # noqa: SLF001 - the one way to its parser
    gateway = session.sparkContext._gateway  # noqa: SLF001 - as above
    for node in _nodes(java.sessionState().sqlParser().parsePlan(text)):
        kind = str(node.getClass().getSimpleName())
        if kind in _EXECUTED or any(is_instance_of(gateway, node, f"{_PLANS}.{each}") for each in _COMMANDS):
            raise StartError(f"sql: is no query but a {kind}; a task's SQL is one SELECT that reads `{VIEW}`")


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    children = plan.children().iterator()
    while children.hasNext():
        yield from _nodes(children.next())


def load(session: SparkSession, source: Source) -> DataFrame:
    """The source's rows, as they come."""
    reader = session.readStream.format(source.format).options(**source.options)
    if source.schema is not None:
        reader = reader.schema(source.schema)
    return reader.load()
