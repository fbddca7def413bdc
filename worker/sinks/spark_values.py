"""What Spark says, without the values that some of its errors quote; rules without I/O.

Anybody may read the cause of a task. The conditions are those of Spark's and Delta's own lists that have
values of rows among their parameters; what a query raises itself (`raise_error`) is not among them, nor is
what Spark mostly says of options and settings (`INVALID_TIMEZONE`, `INVALID_PARAMETER_VALUE`).
"""

from __future__ import annotations

import re
from typing import Final

MASK: Final = "…"
_KEPT: Final = {
    "ARITHMETIC_OVERFLOW": r"((?:byte|short|integer|long|decimal|interval)? ?overflow\..*)",
    "BINARY_ARITHMETIC_OVERFLOW": r"().*( caused overflow\..*)",
    "CANNOT_PARSE_TIME": r"(The input string ).*( cannot be parsed to a TIME value .*)",
    "CANNOT_PARSE_TIMESTAMP": r"().*(\. Use \S+ to tolerate .*)",
    "CAST_INVALID_INPUT": r"(The value ).*( of the type \"[^\"]*\" cannot be cast to .*)",
    "CAST_OVERFLOW": r"(The value ).*( of the type \"[^\"]*\" cannot be cast to .*)",
    "CHECK_CONSTRAINT_VIOLATION": r"(CHECK constraint .*? violated by row with values:\s).*()",
    "CONVERSION_INVALID_INPUT": r"(The value ).*( cannot be converted to .*)",
    "DATETIME_FIELD_OUT_OF_BOUNDS": r"(Invalid value for \w+ \(valid values [\d /-]+\): ).*()",
    "DELTA_EXCEED_CHAR_VARCHAR_LIMIT": r"(Value ).*( exceeds char/varchar .*)",
    "DELTA_FAILED_CAST_PARTITION_VALUE": r"(Failed to cast partition value ).*( to .*)",
    "DELTA_PARTITION_COLUMN_CAST_FAILED": r"(Failed to cast value ).*( to .*)",
    "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES": r"(CHECK constraint .*? violated by row with values:\s).*()",
    "DUPLICATED_MAP_KEY": r"(Duplicate map key ).*( was found, .*)",
    "INVALID_ARRAY_INDEX": r"(The index ).*( is out of bounds\..*)",
    "INVALID_ARRAY_INDEX_IN_ELEMENT_AT": r"(The index ).*( is out of bounds\..*)",
    "INVALID_VARIANT_CAST": r"(The variant value ).*( cannot be cast into .*)",
    "NUMERIC_VALUE_OUT_OF_RANGE": r"().*( cannot be represented as .*)",
}
"""Conditions, and what of their messages has no value: the groups, with a sign between them."""
_CUT: Final = (
    *("CANNOT_CONVERT_SQL_VALUE_TO_PROTOBUF_ENUM_TYPE", "CANNOT_DECODE_URL", "CANNOT_PARSE_INTERVAL"),
    *("CANNOT_PARSE_JSON_FIELD", "COMPARATOR_RETURNS_NULL", "FAILED_ROW_TO_JSON", "ILLEGAL_DAY_OF_WEEK"),
    *("INCONSISTENT_BEHAVIOR_CROSS_VERSION", "INVALID_BITMAP_POSITION", "INVALID_BYTE_STRING"),
    *("INVALID_DATETIME_PATTERN", "INVALID_FRACTION_OF_SECOND", "INVALID_INTERVAL_FORMAT"),
    *("INVALID_REGEXP_REPLACE", "INVALID_URL", "INVALID_UTF8_STRING"),
    *("INVALID_VARIANT_GET_PATH", "MALFORMED_CSV_RECORD", "MALFORMED_RECORD_IN_PARSING"),
    *("NEGATIVE_VALUES_IN_FREQUENCY_EXPRESSION", "NUMERIC_OUT_OF_SUPPORTED_RANGE", "VARIANT_DUPLICATE_KEY"),
)
"""Conditions of whose messages nothing else is shown."""
_END: Final = r"(?=\s*SQLSTATE: \w{5}|\n\s+at [\w.$/]+\(|\nCaused by: |\Z)"
_MESSAGE: Final = re.compile(
    rf"\[(?P<name>{'|'.join((*_KEPT, *_CUT))})(?P<sub>\.\w+)?\] (?P<words>.*?){_END}", re.DOTALL
)
_OF_JAVA: Final = re.compile(
    rf"((?:NumberFormat|DateTimeParse|DateTime)Exception: (?:For input string: )?).*?{_END}", re.DOTALL
)
"""What stands beneath such a condition, with the value again."""


def without_values(text: str) -> str:
    """A message of Spark's, or a whole stack trace, with a sign for each value that a condition quotes."""
    masked, number = _MESSAGE.subn(_masked, text)
    return _OF_JAVA.sub(rf"\1{MASK}", masked) if number else text


def _masked(found: re.Match[str]) -> str:
    kept = re.fullmatch(_KEPT.get(found["name"], ""), found["words"], re.DOTALL)
    return f"[{found['name']}{found['sub'] or ''}] {MASK.join(kept.groups()) if kept else MASK}"
