"""Kinds of values that stand in many places of a definition."""

from __future__ import annotations

import re
from typing import Annotated

import msgspec

from definition.reading import Constraint
from protocol.names import MAX_NAME_LENGTH

IDENTIFIER = r"[^\W\d]\w*"
"""What Python, and SQL without quotes, take for a name."""

Scalar = str | int | float | bool
"""What Spark takes as the value of an option."""


def blank_fault(text: str) -> str | None:
    """What is wrong with a text that says nothing."""
    return None if text.strip() else "must not be empty"


def nul_fault(text: str) -> str | None:
    """What is wrong with a text that is to be stored, or to name a file."""
    return "must not contain NUL, which databases refuse" if "\0" in text else None


def reference_fault(text: str) -> str | None:
    """What is wrong with a text in which nobody looks references up, as it would be taken as it stands."""
    return _NO_REFERENCE if _REFERENCE.search(text) else None


def group_fault(name: str) -> str | None:
    """What is wrong with the name of a consumer group: it stands beside each of its offsets in Kafka."""
    return None if len(name) <= MAX_NAME_LENGTH else f"has more than {MAX_NAME_LENGTH} characters"


def format_fault(name: str) -> str | None:
    """What is wrong with the name of a format, or of a class that is one."""
    if _OWN.match(name):
        return "is of sparkherd's own, by which a sink's fence is moved"
    if not name.strip() or _FORMAT.fullmatch(name):
        return blank_fault(name)
    return "must be a name of letters, digits and _ - . $, of at most 200 characters"


def nesting_fault(schema: str) -> str | None:
    """What is wrong with a schema that is nested so deeply that it would end the JVM which reads it."""
    depth = 0
    for bracket in _BRACKET.findall(_QUOTED.sub("", schema)):
        depth = depth + 1 if bracket in "<([{" else max(depth - 1, 0)
        if depth > MAX_NESTING:
            return f"is nested more than {MAX_NESTING} brackets deep"
    return None


MAX_NESTING = 100
"""Brackets of a schema, open at once: the parser of a JVM with Spark's own stack bears some hundreds."""
_BRACKET = re.compile(r"[<>()\[\]{}]")
_QUOTED = re.compile(
    r"""
    (?<!\w)[rR](?:'[^']*+(?:'|\Z)|"[^"]*+(?:"|\Z)) | '(?:[^'\\]|\\.)*+(?:'|\\?\Z)
    | "(?:[^"\\]|\\.)*+(?:"|\\?\Z) | `[^`]*+(?:`|\Z) | /\*.*?(?:\*/|\Z) | --[^\r\n]*
    """,
    re.DOTALL | re.VERBOSE,
)
"""Texts, names, comments. What is not closed goes to the end, or each would be read to the end anew."""
_OWN = re.compile(r"sparkherd\.|sparkherd_\w+_fence\Z", re.IGNORECASE)
"""Classes and data sources that workers have for their sinks."""
_FORMAT = re.compile(r"[A-Za-z0-9_.$-]{1,200}")
_REFERENCE = re.compile(r"\$\{(?:env|file):")
_NO_REFERENCE = "takes no ${env:NAME} or ${file:PATH}; those are for the values of options and spark_conf"
Text = Annotated[str, Constraint(blank_fault), msgspec.Meta(extra_json_schema={"pattern": r"\S"})]
LiteralText = Annotated[Text, Constraint(reference_fault)]
"""A text that is meant as it stands; `Text` may have references, or signs that only look like some."""
SchemaText = Annotated[LiteralText, Constraint(nesting_fault)]
ConsumerGroup = Annotated[
    LiteralText, Constraint(group_fault), msgspec.Meta(extra_json_schema={"maxLength": MAX_NAME_LENGTH})
]
Format = Annotated[
    str, Constraint(format_fault), msgspec.Meta(extra_json_schema={"pattern": rf"^{_FORMAT.pattern}$"})
]
