"""What kind of SQL it is, by the server's parser."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql.connect.dataframe import DataFrame
from pyspark.sql.connect.plan import SQL

from worker.query_engine import QueryError
from worker.spark.causes import describe
from worker.spark.reader import VIEW

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession


def require_query(session: SparkSession, text: str) -> None:
    """Refuse all but queries, before `session.sql` would execute them.

    Only a query may stand in brackets. The server is asked what columns that has, and executes nothing.

    Raises:
        QueryError: it is a statement of another kind, or it does not parse.
    """
    bracketed = f"({text.rstrip().rstrip(';')}\n)"
    try:
        DataFrame(SQL(bracketed), session).schema  # noqa: B018 - the question is what it raises
    except ParseException as error:
        said = describe(error).partition("\n")[0]
        raise QueryError(
            f"sql: is no query: {said}; a task's SQL is one SELECT that reads `{VIEW}`"
        ) from error
    except AnalysisException:
        return  # `session.sql` says it better, with the right place in the text
