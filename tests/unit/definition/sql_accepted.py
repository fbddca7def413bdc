"""SQL that Spark 4.3 takes, as odd as it can be.

`tests/integration/spark/test_sql_check_agrees.py` asks Spark itself about each of them. A line that begins
with two spaces belongs to the one before it.
"""

from __future__ import annotations

import re

ACCEPTED = re.split(
    r"\n(?!  )",
    r"""
SELECT carrier, dep_delay FROM source WHERE dep_delay > 0
SELECT * FROM source
select a as b, c d, e as `f g` from source s
SELECT DISTINCT a FROM source
SELECT ALL a FROM source
SELECT * EXCEPT (a, b) FROM source
SELECT s.* FROM source s
SELECT carrier, hour, COUNT(*) AS flights, AVG(dep_delay) FROM source GROUP BY carrier, hour HAVING
  COUNT(*) > 3
SELECT window.start, window.end, count(*) FROM source GROUP BY window(ts, '10 minutes', '5 minutes')
SELECT session_window(ts, '5 minutes').start AS s, count(1) c FROM source GROUP BY
  session_window(ts, '5 minutes')
SELECT a, ROW_NUMBER() OVER (PARTITION BY b ORDER BY c DESC NULLS LAST) rn FROM source
SELECT sum(a) OVER w FROM source WINDOW w AS (PARTITION BY b ORDER BY c ROWS BETWEEN 2 PRECEDING AND
  CURRENT ROW)
SELECT sum(a) OVER (ORDER BY ts RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND CURRENT ROW) FROM source
SELECT a, x FROM source LATERAL VIEW explode(xs) t AS x
SELECT a, x FROM source LATERAL VIEW OUTER posexplode(xs) t AS p, x
SELECT transform(xs, x -> x + 1), aggregate(xs, 0, (acc, x) -> acc + x, acc -> acc * 2) FROM source
SELECT filter(xs, (x, i) -> x > i) FROM source
FROM source |> WHERE a > 1 |> SELECT a, b
FROM source SELECT a WHERE a > 1
FROM source |> EXTEND a + 1 AS c |> DROP b |> SET a = 2
TABLE source
TABLE source |> SELECT a
VALUES (1, 'a'), (2, 'b')
VALUES (1, 2) AS t(a, b)
SELECT `a b`, `x``y` FROM `source`
SELECT /*+ BROADCAST(s) */ * FROM source s
SELECT /*+ COALESCE(3), REPARTITION(4, a) */ a FROM source
SELECT * FROM source TABLESAMPLE (10 PERCENT)
SELECT * FROM source TABLESAMPLE (5 ROWS) REPEATABLE (3)
SELECT * FROM source TABLESAMPLE (BUCKET 4 OUT OF 10)
SELECT my_udf(a => 1, b => 'x') FROM source
SELECT r'\d+', R"\w", a RLIKE r'^\d' FROM source
SELECT 'it''s', "double", 'back\'slash', 'a' 'b' FROM source
SELECT DATE '2013-01-01', TIMESTAMP '2013-01-01 00:00:00', X'1F', 1L, 2S, 3Y, 1.5BD, 2.5D, 1e3, 3.F
  FROM source
SELECT INTERVAL 1 DAY, INTERVAL '1-2' YEAR TO MONTH, INTERVAL '1 02:03:04' DAY TO SECOND, INTERVAL 1
  day 2 hours FROM source
SELECT CAST(a AS DECIMAL(10, 2)), a::INT, TRY_CAST(b AS BIGINT), CAST(c AS STRUCT<x: INT, y:
  ARRAY<STRING>>) FROM source
SELECT CAST(a AS MAP<STRING, ARRAY<INT>>), cast(b as timestamp_ntz), cast(c as INTERVAL DAY TO
  SECOND) FROM source
SELECT a, b FROM source WHERE a BETWEEN 1 AND 2 AND b NOT IN (1, 2) AND c IS NOT NULL AND d LIKE
  '%x' ESCAPE '!' OR NOT e
SELECT a FROM source WHERE b LIKE ANY ('a%', 'b%') AND c NOT LIKE ALL ('x', 'y') AND d ILIKE 'z'
SELECT a <=> b, a <> b, a != b, a == b, a DIV b, a % b, a & b | c ^ ~d, a || b, !c FROM source
SELECT a << 2, b >> 3, c >>> 1 FROM source
SELECT CASE WHEN a > 0 THEN 'x' WHEN a < 0 THEN 'y' ELSE 'z' END, CASE a WHEN 1 THEN 2 END FROM source
SELECT IF(a > 0, 1, 2), COALESCE(a, b), nvl(a, 0) FROM source
WITH x AS (SELECT a FROM source), y (b) AS (SELECT a FROM x) SELECT * FROM x JOIN y ON x.a = y.b
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 5) SELECT * FROM t
SELECT * FROM source a LEFT ANTI JOIN source b USING (id)
SELECT * FROM source a LEFT SEMI JOIN source b ON a.id = b.id
SELECT * FROM source a FULL OUTER JOIN source b ON a.id = b.id AND a.ts BETWEEN b.ts AND b.ts +
  INTERVAL 1 HOUR
SELECT * FROM source NATURAL JOIN other CROSS JOIN third
SELECT * FROM source, LATERAL (SELECT source.a + 1 AS b)
SELECT * FROM source, LATERAL explode(xs) AS t(x)
SELECT * FROM a UNION ALL SELECT * FROM b UNION DISTINCT SELECT * FROM c
SELECT * FROM a INTERSECT SELECT * FROM b MINUS SELECT * FROM c EXCEPT ALL SELECT * FROM d
(SELECT a FROM source) UNION (SELECT b FROM source) ORDER BY 1 LIMIT 10 OFFSET 2
SELECT a FROM source SORT BY a
SELECT a FROM source DISTRIBUTE BY a SORT BY b
SELECT a FROM source CLUSTER BY a
SELECT a, sum(b) FROM source GROUP BY a WITH ROLLUP
SELECT a, b, sum(c) FROM source GROUP BY GROUPING SETS ((a, b), a, ())
SELECT a, b, sum(c) FROM source GROUP BY CUBE (a, b)
SELECT a, sum(b) FROM source GROUP BY ALL ORDER BY ALL
SELECT sum(a) FILTER (WHERE b > 1) FROM source
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a) FROM source
SELECT listagg(a, ',') WITHIN GROUP (ORDER BY a DESC) FROM source
SELECT first(a) IGNORE NULLS, last(a) RESPECT NULLS, nth_value(a, 2) IGNORE NULLS OVER (ORDER BY b)
  FROM source
SELECT * FROM (SELECT a, b, c FROM source) PIVOT (sum(c) FOR b IN ('x' AS x, 'y' AS y))
SELECT * FROM source UNPIVOT INCLUDE NULLS (v FOR n IN (a AS x, b, c))
SELECT * FROM source UNPIVOT ((v, w) FOR n IN ((a, b) AS x, (c, d)))
SELECT a.b.c, xs[0], m['key'], s['a'].b, f(a)[1].c FROM source
SELECT struct(a, b AS c), named_struct('x', 1), array(1, 2), map('a', 1) FROM source
SELECT EXTRACT(HOUR FROM ts), TRIM(BOTH 'x' FROM a), SUBSTRING(a FROM 2 FOR 3), POSITION('a' IN b),
  OVERLAY(a PLACING 'x' FROM 2) FROM source
SELECT date_add(DAY, 1, ts), dateadd(MONTH, 2, d), timestampdiff(HOUR, a, b), datediff(DAY, a, b)
  FROM source
SELECT CURRENT_DATE, CURRENT_TIMESTAMP(), current_user FROM source
SELECT a FROM source WHERE EXISTS (SELECT 1 FROM other o WHERE o.id = source.id)
SELECT a, (SELECT max(b) FROM other) m FROM source
SELECT a FROM source WHERE (a, b) IN (SELECT x, y FROM other)
SELECT stack(2, 1, 'a', 2, 'b') AS (n, s) FROM source
SELECT explode(xs) AS x, inline(ys) AS (p, q) FROM source
SELECT from_json(payload, 'a INT, b STRING').a, payload:a.b[0]::int FROM source
SELECT to_json(struct(*)), count(DISTINCT a, b), count(*) FROM source
SELECT year, month, day, hour, minute, date, timestamp, time, source, format, data, user FROM source
SELECT first, last, key, value, values, option, options, path, comment, id, type, name, interval
  FROM source
SELECT source.year AS year, s.day day FROM source s
SELECT a AS select_, b AS `from`, c AS end, d AS order FROM source
SELECT a end, b start FROM source
SELECT from FROM source
SELECT a FROM source WHERE
SELECT FROM source
SELECT 1
SELECT 1;
SELECT 1 ; ;
SELECT a -- trailing
SELECT a FROM source -- ends with comment; and a semicolon
SELECT '--no comment', '/* nor this */', ';' FROM source
SELECT 2013_flights.a, `2x` FROM source
SELECT a AS 2x FROM source
SELECT /* c */ a FROM source
SELECT a FROM source LIMIT ALL
SELECT TRANSFORM(a, b) USING 'cat' AS (c, d) FROM source
SELECT * FROM range(10)
SELECT * FROM range(0, 10, 1, 2) AS t(i)
SELECT * FROM my_tvf(TABLE(source) PARTITION BY a ORDER BY b)
SELECT IDENTIFIER('a') FROM IDENTIFIER('source')
SELECT :param, ? FROM source
SELECT a FROM source VERSION AS OF 3
SELECT a FROM source TIMESTAMP AS OF '2013-01-01'
SELECT a COLLATE UTF8_LCASE FROM source
SELECT a FROM source ORDER BY a COLLATE unicode
SELECT TIMESTAMP_NTZ '2013-01-01', TIMESTAMP_LTZ'2013-01-01', TIME '10:00:00' FROM source
SELECT a FROM delta.`/tmp/x`
SELECT a FROM parquet.`/tmp/x`
SELECT a FROM json.`x y`.b
SELECT a FROM source s (x, y)
SELECT a FROM source AS s (x, y) WHERE x > 1
SELECT * FROM source QUALIFY ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) = 1
SELECT a, b AS (c) FROM source
SELECT array_sort(xs, (l, r) -> CASE WHEN l < r THEN -1 ELSE 1 END) FROM source
SELECT a IS DISTINCT FROM b, a IS NOT DISTINCT FROM c, a IS TRUE, b IS NOT UNKNOWN FROM source
SELECT a REGEXP 'x', NOT a RLIKE 'y' FROM source
SELECT - a, + b, ~ c, - - d FROM source
SELECT .5, 5., 0x1F FROM source
SELECT make_interval(1), a + INTERVAL '5' MINUTE, INTERVAL -3 DAYS FROM source
SELECT count(*) FROM STREAM source
SELECT * FROM STREAM(source)
SELECT * FROM source WATERMARK ts DELAY OF INTERVAL 10 SECONDS
SELECT a FROM source WHERE CAST(b AS STRING) = 'x' AND (c OR d) AND ((e))
MAP a, b USING 'cat' AS c FROM source
REDUCE a USING 'cat' AS c FROM source
FROM source INSERT INTO t1 SELECT a INSERT INTO t2 SELECT b
SELECT CASE WHEN 1 THEN 2 END case FROM source
SELECT a b FROM source c WHERE c.a = 1 GROUP BY b
SELECT sum(dep_delay) / count(*) AS mean, max_by(flight, dep_delay) FROM source GROUP BY 1
SELECT concat_ws('-', year, month, day) AS day, sched_dep_time, dep_delay FROM source WHERE origin
  IN ('JFK', 'LGA')
SELECT make_date(year, month, day) d, carrier, dep_delay FROM source WHERE arr_delay IS NOT NULL AND
  dep_delay > 15.0
SELECT carrier, hour, count(*) AS flights, sum(CASE WHEN dep_delay > 0 THEN 1 ELSE 0 END) late FROM
  source GROUP BY carrier, hour
SELECT parse_json('{"a": 1}'):a, variant_get(v, '$.a', 'int') FROM source
SELECT schema_of_json('x'), a AS `a.b`, element_at(m, 'k') FROM source
SELECT hash(*), struct(*, 1) FROM source
SELECT * EXCEPT (a) FROM source WHERE struct(*) IS NOT NULL
SELECT any_value(a), some(b), every(c), left(d, 1), right(d, 1), replace(d, 'a', 'b') FROM source
SELECT ceil(a), floor(b, 1), cube(a), char(65), date(ts), int(a), string(b), boolean(c) FROM source
SELECT grouping(a), grouping_id() FROM source GROUP BY a WITH CUBE
SELECT count_if(a > 1) filter (where b), approx_count_distinct(a, 0.05) FROM source
SELECT try_divide(a, b), a DIV 2 FROM source HAVING 1 > 0
DESCRIBE source
SHOW TABLES
EXPLAIN SELECT 1
SET x = 1
BEGIN SELECT 1; SELECT 2; END
SELECT a FROM source LATERAL VIEW explode(x) AS y LATERAL VIEW explode(y) z AS w WHERE w > 1
SELECT a FROM source TABLESAMPLE SYSTEM (10 PERCENT)
SELECT a FROM (source)
SELECT a FROM ((SELECT a FROM source))
SELECT a FROM (SELECT a FROM source) AS x, (VALUES (1)) y(b)
SELECT "a" "b" FROM source
SELECT a FROM source OFFSET 3
SELECT a FROM source LIMIT 3 + 4
SELECT a FROM source FOR SYSTEM_TIME AS OF '2013-01-01'
SELECT a.`b`.c AS d, `a`.b `e` FROM source
SELECT * FROM source JOIN other
SELECT * FROM source JOIN LATERAL (SELECT 1) ON true
SELECT DISTINCT ON (a) b FROM source
SELECT a FROM source ORDER BY a ASC NULLS FIRST, b DESC
SELECT a FROM source GROUP BY a, b, GROUPING SETS ((a), (b))
SELECT approx_top_k(a) FROM source
SELECT (a, b), (a) FROM source
SELECT a -> b FROM source
SELECT f(x -> x, y => 1) FROM source
SELECT row(1,2) FROM source
SELECT TRUE, FALSE, NULL, true AND NULL FROM source
SELECT * FROM WHERE a > 1
SELECT * FROM
SELECT FROM WHERE
SELECT a + FROM source
SELECT a + * b FROM source
WITH x (SELECT 1) SELECT * FROM x
FROM source
SELECT a FROM source WHERE NOT
SELECT hour, FROM source
SELECT a AS FROM source
SELECT a. FROM source
SELECT * * FROM source
SELECT a FROM source LIMIT
SELECT a FROM source LIMIT LIMIT
SELECT a -- trailing; comment
  FROM source /* block /* nested */ ( */ WHERE a = 1
-- first a comment
  SELECT a
  FROM source -- and one at the end
SELECT x FROM source WHERE (x, y) WHERE x > 1
SELECT * FROM source IN (a, b) JOIN other
SELECT 'z' END, CASE a FROM source w
SELECT * FROM a, CASE b JOIN c
SELECT CAST(a - INT) FROM source
SELECT CAST(AS) FROM source
SELECT struct(* source, 1) FROM source
SELECT (WITH a, b), (a) FROM source
SELECT a FROM (SELECT a FROM source) AS x, (NOT (1)) y(b)
SELECT * FROM source, NOT USE JOIN other
SELECT * FROM source, NULL JOIN other
SELECT * FROM source FROM NATURAL JOIN other
SELECT count(*) FROM STREAM BETWEEN source
SELECT * FROM WHERE LIMIT a > 1
SELECT a FROM source UNION DISTINCT SELECT SELECT * FROM c
SELECT to_json(a) SELECT, (DISTINCT a, b) FROM source
SELECT * FROM (FROM source SELECT a WHERE b)
FROM source SELECT * FROM SELECT a, sum
SELECT * FROM (FROM source SELECT * WHERE a SELECT b)
SELECT NOT (a) OVER (PARTITION BY b) FROM source
SELECT EXISTS(a) OVER (PARTITION BY b) FROM source
SELECT a FROM source WHERE NOT EXISTS (WITH x AS (SELECT 1) SELECT b FROM x UNION SELECT 2)
""".strip(),
)

UNKNOWN_TO_4_1 = {
    "SELECT * FROM source QUALIFY ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) = 1",
    "SELECT a FROM source TABLESAMPLE SYSTEM (10 PERCENT)",
}
"""Of these, what an older Spark that is run with does not parse: it says so itself, when the task starts."""
