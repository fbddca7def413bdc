"""Objects of JSON by Java of ours, where Spark has it: as `payload_formats` reads them, in half of the time.

Spark's `from_json` sets up a decoder of characters for each text, and does not say what stands behind the
first object. `connectors/json` reads bytes by the same parser of Spark's, and gives NULL for all that is not
one object. Whether a Spark has that Java makes no difference to what is read.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from worker.spark.reading.payload_formats import (
    ROW,
    Reading,
    allows_comments,
    from_text,
    is_of_another_schema,
    permissive,
    schema_of,
    string,
    with_corrupt,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from definition.source import Payload

FUNCTION: Final = "sparkherd_json"
"""What that Java adds to SQL."""
JAR: Final = Path(__file__).with_name("sparkherd-json.jar")
"""It is not there in a checkout without `make jars`, nor in what is installed from one."""


def reads_objects(session: SparkSession, payload: Payload) -> bool:
    """Whether a column is read that way.

    Not where comments are allowed, for `payload_formats` does not look behind the first object then; and not
    where a value that cannot be read is NULL.
    """
    is_strict = payload.format == "json" and payload.fails and not allows_comments(payload)
    return is_strict and session.catalog.functionExists(FUNCTION)


def object_of(column: str, payload: Payload, path: str, corrupt: str) -> Reading:
    """How one column is read, as `payload_formats.READERS` has it."""
    value = string(column)
    schema, names = with_corrupt(schema_of(payload, path), corrupt)
    wanted = [each for each in schema.fieldNames() if each not in names]
    row = from_text(FUNCTION, value, schema, permissive(payload))
    return Reading(row, f"{ROW} IS NULL OR ({is_of_another_schema(value, wanted, payload)})", names)
