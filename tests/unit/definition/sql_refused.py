"""SQL that Spark 4.3 certainly does not take.

`tests/integration/spark/test_sql_check_agrees.py` asks Spark itself about each of them. A line that begins
with two spaces belongs to the one before it.
"""

from __future__ import annotations

import re

REFUSED = re.split(
    r"\n(?!  )",
    r"""
SELECT unhex('ff'), b'01' FROM source
SELECT N'x' FROM source
SELEC a FROM source
SELECT a FRM source
SELECT a b c FROM source
SELECT (a FROM source
SELECT a) FROM source
SELECT a FROM source WHERE a >
SELECT a FROM source WHERE > a
SELECT a,, b FROM source
SELECT 'a FROM source
SELECT `a FROM source
SELECT "a FROM source
SELECT a FROM source; SELECT b FROM source
SELECT a FROM source; DROP TABLE x
not sql at all
hello
42
'text'
SELECT a FROM source foo bar
SELECT a FROM source WHERE a > 1 foo bar
SELECT a FROM source WHERE a = = 1
SELECT f(a b c) FROM source
SELECT f(a,) FROM source
SELECT a FROM source garbage here WHERE a > 1
SELECT CASE WHEN a THEN b FROM source
SELECT a FROM source GROUP carrier
SELECT a FROM source ORDER a
SELECT a FROM source WHERE a IN 1, 2
SELECT a FROM source WHERE a BETWEEN 1
SELECT
SELECT ,
SELECT a b FROM source WHERE c d
SELECT a /* FROM source
SELECT a FROM source )
SELECT [a FROM source
SELECT xs[0 FROM source
SELECT a[0) FROM source
SELECT a FROM source WHERE a == 1 AND
SELECT a FROM source WHERE AND a
SELECT 1 2
SELECT a FROM source WHERE a LIKE
{"a": 1}
SELECT a FROM source WHERE a > 1;;b
carrier, dep_delay
SELECT carrier dep_delay arr_delay FROM source
SELECT carrier, dep_delay FROM source WERE dep_delay > 0
SELECT carrier, dep_delay FROM source WHERE dep_delay > 0 GROUPBY carrier
SELECT carrier, count(*) FROM source GROUP BY carrier HAVIN count(*) > 1
SELECT a FROM source WHERE a > 'x
SELECT a FROM source WHERE (a > 1
SELECT a FROM source WHERE a > 1)
SELECT a FROM source WHERE a NOT 5
SELECT a AS b AS c FROM source
SELECT a..b FROM source
SELECT .a FROM source
SELECT count(* FROM source
SELECT count(*)) FROM source
SELECT a FROM source t u v
SELECT sum(a) OVER PARTITION BY b FROM source
(SELECT a FROM source
-- nothing but a comment
/* nor here */ ;
""".strip(),
)
