"""What kind of SQL it is, by the parser in the worker's own JVM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from py4j.java_gateway import is_instance_of

from worker.executor import StartError
from worker.spark.reader import VIEW

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

_PLANS = "org.apache.spark.sql.catalyst.plans.logical"
_COMMANDS = ("Command", "ParsedStatement")
_EXECUTED = {"UnresolvedExecuteImmediate", "Call", "InsertIntoDir"}
"""What Spark executes too, though it is neither of the two before it is analysed."""


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
