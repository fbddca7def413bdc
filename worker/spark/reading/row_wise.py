"""Whether each row of a result is made of one row of the stream, and nothing is kept from batch to batch.

By the plan as Spark prints it, which is the same behind Spark Connect. A plan that is not known to be so is
refused: a text that looks like a part of one can only have more refused.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from worker.query_engine import QueryError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame

_STREAM: Final = "Streaming"
"""How the names of those begin that stream."""
_NODES: Final = frozenset(
    {
        *("Project", "Filter", "SubqueryAlias", "View", "Generate", "Join", "ResolvedHint", "UnresolvedHint"),
        *("WithCTE", "CTERelationDef", "CTERelationRef", "StreamingRelation", "StreamingRelationV2"),
        *("Relation", "RelationV2", "DataSourceV2Relation", "LocalRelation", "LogicalRDD", "OneRowRelation"),
        "Range",
    }
)
_INNER: Final = ("Inner", "Cross")
_OF_LEFT: Final = ("LeftOuter", "LeftSemi", "LeftAnti")
"""Joins that take each row of what is on the left by itself."""
_LINE: Final = re.compile(r"(?P<before>[\s:|]*(?:[+:]-\s)?)[!'~]?(?P<node>\w+)\s*(?P<rest>.*)")
_ANALYZED: Final = "== Analyzed Logical Plan =="


class Node(NamedTuple):
    """One line of a plan."""

    depth: int
    name: str
    rest: str


def require_row_wise(result: DataFrame) -> None:
    """Refuse a result that takes more than one row of the stream at a time.

    Args:
        result: of a query that streams.

    Raises:
        QueryError: there is something in its plan that might.
    """
    if fault := fault_of(_plan_of(result)):
        raise QueryError.at(
            "on_error",
            f"quarantine takes sql that makes each row of one row of the stream, and {fault}",
            permanent=True,
        )


def fault_of(plan: str) -> str | None:
    """What in an analyzed plan, as Spark prints it, may take several rows of the stream; or None."""
    nodes = list(_nodes(plan))
    strange = [node.name for node in nodes if node.name not in _NODES]
    if strange:
        return f"its plan has the node {strange[0]}"
    referred = [node.rest.partition(",")[0] for node in nodes if node.name == "CTERelationRef"]
    streams = sum(node.name.startswith(_STREAM) for node in nodes)
    if streams != 1 or len(set(referred)) < len(referred):
        return "it reads the stream more than once"
    if any(_joins_rows(nodes, at) for at, node in enumerate(nodes) if node.name == "Join"):
        return "it joins the stream in a way that is not of each of its rows by itself"
    return None


def _plan_of(result: DataFrame) -> str:
    frame: Any = result
    if (java := getattr(frame, "_jdf", None)) is not None:
        return str(java.queryExecution().analyzed().toString())
    explained: str = frame._explain_string(extended=True)  # noqa: SLF001 - what `explain` of Spark Connect prints
    analyzed = explained.partition(_ANALYZED)[2].partition("\n== ")[0]
    return analyzed.strip("\n").partition("\n")[2]  # below the columns of the result


def _nodes(plan: str) -> Iterator[Node]:
    for line in plan.strip("\n").split("\n"):
        if match := _LINE.match(line):
            yield Node(len(match["before"]), match["node"], match["rest"])


def _joins_rows(nodes: Sequence[Node], at: int) -> bool:
    """Whether the join there may make rows of what is not on its left."""
    kind = re.split(r"[\s,]", nodes[at].rest, maxsplit=1)[0]
    if kind in _INNER:
        return False
    below: list[Node] = []
    for node in nodes[at + 1 :]:
        if node.depth <= nodes[at].depth:
            break
        below.append(node)
    right = max(at for at, node in enumerate(below) if node.depth == below[0].depth)
    return kind not in _OF_LEFT or any(node.name.startswith(_STREAM) for node in below[right:])
