"""What a task's SQL may be and do, by the parser and the session in the worker's own JVM."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JJavaError

from worker.query_engine import QueryError
from worker.spark.reading.relation_options import OPTIONS_IN_SQL

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from pyspark.sql import SparkSession

_PLANS = "org.apache.spark.sql.catalyst.plans.logical"
_COMMANDS = ("Command", "ParsedStatement")
_EXECUTED = {"UnresolvedExecuteImmediate", "Call", "InsertIntoDir"}
"""What Spark executes too, though it is neither of the two before it is analysed."""
_NAMED_LATER = "PlanWithUnresolvedIdentifier"
"""Whatever has a name by IDENTIFIER(...) of more than a text; commands, too."""
_ROWS_IN_WORDS = {"LocalRelation", "OneRowRelation", "UnresolvedInlineTable"}
"""Leaves of a plan that are in its text themselves."""
_COMMAND_LINE = ("STRING_LITERAL", "DOUBLEQUOTED_STRING", "COLON", "QUESTION")
"""What stands behind the USING of `SELECT TRANSFORM(...) USING 'command'`, and of MAP and REDUCE."""
_JAVA_CALLERS = ("java_method", "reflect", "try_reflect")
"""Spark's functions that call any static method, `System.getenv` and `System.load` among them."""
_PATH_READERS = ("table_changes_by_path",)
"""Functions of connectors that read a table by its path, whatever `spark.sql.runSQLOnFiles` says."""


def require_query(session: SparkSession, text: str) -> None:
    """Refuse all but queries, before `session.sql` would execute them, and those that do more than read.

    Raises:
        QueryError: it is a statement of another kind, or it holds one; or it has the system run a command,
            or gives options to a table.
        ParseException: it does not parse.
    """
    for parser in _parsers(session):
        _require_query(session, parser.parsePlan(text))
    lexed = _Lexed(session, text)
    if lexed.has("USING", *_COMMAND_LINE):
        raise QueryError.at(
            "sql",
            "USING runs a command of the system, which is off in the sql of a task:"
            " move it to an entry point (--allow-entrypoint)",
            permanent=True,
        )
    if lexed.has("WITH", "LEFT_PAREN"):
        raise QueryError.at("sql", OPTIONS_IN_SQL, permanent=True)


def _parsers(session: SparkSession) -> Iterator[Any]:
    """Spark's own, and the session's if extensions have put another before it.

    What extensions add are statements (RESTORE and CLONE of Delta, CALL of Iceberg), not all of which are
    commands by their class before they are analysed. Spark's own parser knows none of them.
    """
    java: Any = session._jsparkSession  # noqa: SLF001 - the one way to its parser
    jvm: Any = session._jvm  # noqa: SLF001 - as above
    own, extended = jvm.org.apache.spark.sql.execution.SparkSqlParser(), java.sessionState().sqlParser()
    yield own
    if not extended.getClass().equals(own.getClass()):
        yield extended


def _require_query(session: SparkSession, plan: Any) -> None:
    gateway = session.sparkContext._gateway  # noqa: SLF001 - the one way to Java's classes
    for node in _nodes(session._jvm, plan):  # noqa: SLF001 - as above
        kind = _kind(node)
        if kind in _EXECUTED or any(is_instance_of(gateway, node, f"{_PLANS}.{each}") for each in _COMMANDS):
            raise QueryError.at(
                "sql", f"is no query but a {kind}; it is to be one SELECT that reads the sources"
            )


def reads_only(session: SparkSession, text: str, views: Collection[str]) -> bool:
    """Whether nothing but those views has to be looked at to plan a query.

    What a WITH names counts as something else: so may a table be called that is meant instead.

    Raises:
        ParseException: it does not parse.
    """
    java: Any = session._jsparkSession  # noqa: SLF001 - the one way to its parser
    plan = java.sessionState().sqlParser().parsePlan(text)
    leaves = (node for node in _nodes(session._jvm, plan) if node.children().isEmpty())  # noqa: SLF001 - as above
    known = {view.lower() for view in views}
    return all(_relation(leaf) in known for leaf in leaves if _kind(leaf) not in _ROWS_IN_WORDS)


def _relation(leaf: Any) -> str | None:
    """The name by which a query reads something; None of what has none, such as a function's table."""
    if _kind(leaf) != "UnresolvedRelation":
        return None
    return str(leaf.multipartIdentifier().mkString(".")).lower()


def _kind(node: Any) -> str:
    return str(node.getClass().getSimpleName())


class _Lexed:
    """A text by Spark's lexer.

    Plans do not show all that is in their text: queries in the WINDOW clause, options of a table named by
    IDENTIFIER or read AS OF a time.
    """

    def __init__(self, session: SparkSession, text: str) -> None:
        jvm: Any = session._jvm  # noqa: SLF001 - the one way to its lexer
        parser, antlr = jvm.org.apache.spark.sql.catalyst.parser, jvm.org.antlr.v4.runtime
        self._kinds = parser.SqlBaseLexer
        lexer = parser.SqlBaseLexer(parser.UpperCaseCharStream(antlr.CharStreams.fromString(text)))
        self._tokens = antlr.CommonTokenStream(lexer)
        self._tokens.fill()

    def has(self, word: str, *before: str) -> bool:
        """Whether the word stands before one of those tokens, comments and spaces between them left out."""
        wanted = {getattr(self._kinds, name) for name in before}
        found = self._tokens.getTokens(0, self._tokens.size() - 1, getattr(self._kinds, word)) or ()
        return any(self._after(each.getTokenIndex()).getType() in wanted for each in found)

    def _after(self, index: int) -> Any:
        self._tokens.seek(index)
        return self._tokens.LT(2)


def drop_escapes(session: SparkSession) -> None:
    """Take the functions out of this session that reach whatever the worker's process can.

    No name finds them then, however it is qualified or put together; other sessions have them still. Up to
    Spark 4.1 they are kept under their bare names, later ones as those of `system.builtin`.
    """
    java: Any = session._jsparkSession  # noqa: SLF001 - the one way to its functions
    jvm: Any = session._jvm  # noqa: SLF001 - as above
    state = java.sessionState()
    identifier, none = jvm.org.apache.spark.sql.catalyst.FunctionIdentifier, jvm.scala.Option.empty()
    builtin = (jvm.scala.Option.apply("builtin"), jvm.scala.Option.apply("system"))
    found = ((state.functionRegistry(), _JAVA_CALLERS), (state.tableFunctionRegistry(), _PATH_READERS))
    for registry, name in ((registry, name) for registry, names in found for name in names):
        registry.dropFunction(identifier(name, *builtin))
        with contextlib.suppress(Py4JJavaError):  # later ones assert that no name is bare
            registry.dropFunction(identifier(name, none, none))


def _nodes(jvm: Any, plan: Any) -> Iterator[Any]:
    """The plan, all below it, and what is beside that: subqueries, and the queries of a WITH."""
    yield plan
    if _kind(plan) == _NAMED_LATER:
        yield from _nodes(jvm, _named(jvm, plan))
    for parts in (plan.children(), plan.innerChildren()):
        each = parts.iterator()
        while each.hasNext():
            yield from _nodes(jvm, each.next())


def _named(jvm: Any, plan: Any) -> Any:
    """What Spark makes of it when it knows the name, which is any here: an INSERT, perhaps."""
    name = jvm.PythonUtils.toSeq(jvm.java.util.Collections.singletonList("any"))
    return plan.planBuilder().apply(name, plan.children())
