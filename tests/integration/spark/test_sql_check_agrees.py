"""What is said of a definition without Spark, held against Spark itself."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from definition.intervals import trigger_interval_fault
from definition.sql.check import sql_fault
from definition.sql.lexer import tokens
from definition.sql.words import KEYWORDS
from tests.unit.definition import interval_corpus
from tests.unit.definition.sql_accepted import ACCEPTED, UNKNOWN_TO_4_1
from tests.unit.definition.sql_refused import REFUSED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

MUTANTS = 1_000
SPARE = """
    SELECT FROM WHERE AND OR NOT IN IS NULL LIKE BETWEEN CASE WHEN THEN ELSE END AS ON USING JOIN LEFT OUTER
    UNION ALL WITH OVER GROUP ORDER BY HAVING LIMIT DISTINCT CAST EXISTS PARTITION * ( ) , . = - + 1 's' a b
"""


def _parses(spark: SparkSession, sql: str) -> bool:
    """What Spark's own parser says."""
    try:
        spark._jsparkSession.sessionState().sqlParser().parsePlan(sql)
    except (PySparkException, Py4JJavaError):
        return False
    return True


def _mutants() -> Iterator[str]:
    """The corpus with words taken out, put in, put elsewhere; the same ones every time."""
    random = Random(2013)
    spare = SPARE.split()
    corpus = [_words(sql) for sql in (*ACCEPTED, *REFUSED)]
    for _ in range(MUTANTS):
        words = list(random.choice(corpus))
        for _ in range(random.randint(1, 3)):
            at = random.randrange(len(words) + 1)
            words[at : at + random.randint(0, 1)] = random.choice([[], [random.choice(spare)], words[-2:]])
        yield " ".join(words)


def _words(sql: str) -> list[str]:
    return [sql[token.start : token.start + len(token.text)] for token in tokens(sql)]


def test_what_spark_parses_is_accepted(spark: SparkSession) -> None:
    """The corpus is what it says, so the unit tests over it mean something."""
    older = UNKNOWN_TO_4_1 if spark.version.startswith("4.1.") else set()
    assert {sql for sql in ACCEPTED if not _parses(spark, sql)} == older
    assert [sql for sql in ACCEPTED if sql_fault(sql)] == []


def test_what_is_refused_does_not_parse(spark: SparkSession) -> None:
    """Likewise for the garbage."""
    assert [sql for sql in REFUSED if _parses(spark, sql)] == []


def test_no_mutant_that_spark_parses_is_refused(spark: SparkSession) -> None:
    """Where nobody thought of it; and the check is no pushover, it refuses most of what Spark does."""
    verdicts = [(sql, _parses(spark, sql), sql_fault(sql)) for sql in _mutants()]
    assert [(sql, fault) for sql, parses, fault in verdicts if parses and fault] == []
    faults = [fault for _, parses, fault in verdicts if not parses]
    assert sum(fault is not None for fault in faults) > 0.5 * len(faults)


def test_all_of_sparks_keywords_are_known(spark: SparkSession) -> None:
    """A new version's new keywords show here first."""
    jvm: Any = spark._jvm
    vocabulary = jvm.org.apache.spark.sql.catalyst.parser.SqlBaseLexer.VOCABULARY
    known = range(1, vocabulary.getMaxTokenType() + 1)
    literals = {(vocabulary.getLiteralName(at) or "").strip("'") for at in known}
    assert {word for word in literals if word.isidentifier()} <= KEYWORDS
    assert {"RLIKE", "REGEXP", "TEMPORARY", "TEMP"} <= KEYWORDS - literals  # each spelt in two ways


@pytest.mark.parametrize("interval", [*interval_corpus.ACCEPTED, *interval_corpus.REFUSED])
def test_spark_takes_the_same_triggers(spark: SparkSession, interval: str) -> None:
    """Interval by interval."""
    jvm: Any = spark._jvm
    trigger = jvm.org.apache.spark.sql.streaming.Trigger
    try:
        trigger.ProcessingTime(interval)
        takes = True
    except (PySparkException, Py4JJavaError):
        takes = False
    assert takes == (trigger_interval_fault(interval) is None)
