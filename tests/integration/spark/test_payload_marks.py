"""What ends a value of Kafka's, so that more than one row is found: nobody may come to know it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from definition.source import Payload
from telemetry.secrets import scrub
from worker.spark.reading.payload_formats import READERS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMAS = {
    "json": "id BIGINT",
    "csv": "id BIGINT",
    "avro": '{"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}]}',
}
_LITERAL = re.compile(r"X'([0-9a-f]+)'")
_MARK = re.compile(r"(?<![0-9a-f])[0-9a-f]{12}(?![0-9a-f])")


def marks_of(form: str) -> set[str]:
    """What nobody may know in the texts of SQL for a format."""
    reading = READERS[form]("value", Payload(format=form, schema=SCHEMAS[form]), "source.value", "")  # type: ignore[arg-type]
    sql = f"{reading.row} {reading.is_bad}"
    literals = [bytes.fromhex(each).decode() for each in _LITERAL.findall(sql)]
    return {each for text in (sql, *literals) for each in _MARK.findall(text)}


@pytest.mark.parametrize("form", SCHEMAS)
def test_no_cause_tells_a_mark(spark: SparkSession, form: str) -> None:  # noqa: ARG001 - reads schemas
    """Nor in the hexadecimal digits that Spark shows bytes by."""
    assert marks_of(form)
    for mark in marks_of(form):
        for told in (mark, mark.encode().hex(), mark.encode().hex().upper()):
            assert scrub(f"cannot read `x`,_end_{told} of X'{told}'") == "cannot read `x`,_end_*** of X'***'"


def test_each_format_has_a_mark_of_its_own(spark: SparkSession) -> None:  # noqa: ARG001 - reads schemas
    """Who comes to know one cannot end a value of another."""
    for form in SCHEMAS:
        others = set.union(*(marks_of(other) for other in SCHEMAS if other != form))
        assert marks_of(form) - others
