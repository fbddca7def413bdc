"""Options that SQL gives to a table, where only its text tells."""

from __future__ import annotations

import pytest

from worker.query_engine import QueryError
from worker.spark.connect.query_session import require_query
from worker.spark.reading.relation_options import may_have_options


@pytest.mark.parametrize(
    "relation",
    [
        "t WITH (a 'b')",
        "t WITH \n\t (a 'b')",
        "`t`with(a 'b')",
        "t w\u0131th\u00a0(a 'b')",
        "t WITH -- (\n -- \\\n x\n\t(a 'b')",
        "t WITH /* x */ (a 'b')",
        "t WITH --\r(a 'b')",
        "t TIMESTAMP AS OF 1E+5WITH (a 'b')",
    ],
)
def test_options_are_found(relation: str) -> None:
    """However the word is written, and whatever stands before the bracket; the server is not asked then."""
    sql = f"SELECT * FROM {relation}"
    assert may_have_options(sql)
    with pytest.raises(QueryError, match=r"^sql: gives options to a table") as refused:
        require_query(None, sql)
    assert refused.value.permanent


@pytest.mark.parametrize(
    "sql",
    [
        "WITH a AS (SELECT 1) SELECT * FROM a",
        "SELECT startswith(a, b), endswith (a, b) FROM t",
        "SELECT count(*) FROM t GROUP BY a WITH ROLLUP ORDER BY (a)",
    ],
)
def test_other_queries_are_as_ever(sql: str) -> None:
    """The word begins common table expressions, and ends names of functions."""
    assert not may_have_options(sql)
