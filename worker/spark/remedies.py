"""Failures that another try would only repeat, and what a person can do about each; rules without I/O.

They go by the line in which Spark says what is wrong: it is the same in a JVM of the worker's own and behind
Spark Connect, where the class of an exception does not arrive.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from pyspark import __version__ as spark_version

from protocol.connectors import package_of

_INSTALL = (
    "start the group's workers with --packages {package}"
    " (with --spark-remote, the Spark Connect server), then `sparkherd tasks restart`"
)
_JAVA = (
    "what calls any method of Java's is off in the sql of a task: move it to an entry point"
    " (--allow-entrypoint)"
)
_NO_BUILTIN = f"there is no such function in the sql of a task; {_JAVA}"
_FILES = (
    "if that is a file, have the source read it, or allow all sql to read files with"
    " --spark-conf spark.sql.runSQLOnFiles=true on the workers"
)
_UNREADABLE = (
    "if it is to stay, have its columns null with on_error: null, or begin behind it with"
    " `sparkherd tasks reset --offset`"
)
_RESTART = "`sparkherd tasks restart` when it is there"


class PermanentFailure(NamedTuple):
    """A kind of failure: what its line looks like, and what to do, if Spark does not say so itself.

    `at_start_only` says that of a query that has run before it may pass by itself.
    """

    line: re.Pattern[str]
    remedy: str | None = None
    at_start_only: bool = False


_PERMANENT = (
    PermanentFailure(
        re.compile(r"\[\w+_DATA_SOURCE_NOT_ENABLED\] Failed to find data source: (?P<format>[\w.]+?)\. "),
        _INSTALL,
    ),
    PermanentFailure(
        re.compile(r"\[DATA_SOURCE_NOT_FOUND\] Failed to find the data source: (?P<format>[\w.]+?)\. "),
        _INSTALL,
    ),
    PermanentFailure(
        re.compile(r'No FileSystem for scheme "|Class org\.apache\.hadoop\.fs\.[\w.]+ not found'),
        _INSTALL.format(package="GROUP:ARTIFACT:VERSION of that file system"),
    ),
    PermanentFailure(
        re.compile(
            r"(?i)\[(?:UNRESOLVED_ROUTINE|ROUTINE_NOT_FOUND|REQUIRES_\w+)\]"
            r" .*`(?:java_method|(?:try_)?reflect)`"
        ),
        _JAVA,
    ),
    PermanentFailure(
        re.compile(r"\[REQUIRES_SINGLE_PART_NAMESPACE\] .*`system`\.`builtin`(?!\.`)"), _NO_BUILTIN
    ),
    PermanentFailure(
        re.compile(r"\[TABLE_OR_VIEW_NOT_FOUND\] The table or view `\w+`\.`[^`]*[/:.*][^`]*` cannot"), _FILES
    ),
    PermanentFailure(re.compile(r", partition \d+, offset \d+: cannot be taken apart as \w+"), _UNREADABLE),
    PermanentFailure(re.compile(r"does not support streamed (?:reading|writing)")),
    PermanentFailure(re.compile(r"\[UNSUPPORTED_FEATURE\.")),
    PermanentFailure(re.compile(r"\[PATH_NOT_FOUND\]"), _RESTART, at_start_only=True),
    PermanentFailure(re.compile(r"'path' is not specified"), "add `path` to the options"),
    PermanentFailure(
        re.compile(r"Schema must be specified when creating a streaming source"), "add source.schema"
    ),
    PermanentFailure(
        re.compile(r"\[PARSE_SYNTAX_ERROR\]|\[STREAMING_OUTPUT_MODE\.|\[CANNOT_MODIFY_CONFIG\]")
    ),
    PermanentFailure(
        re.compile(r"\[UNRESOLVED_COLUMN\.|\[UNRESOLVED_ROUTINE\]|\[DATATYPE_MISMATCH\."), at_start_only=True
    ),
)


class Judged(NamedTuple):
    """A cause with what to do about it, and whether another try would end the same way."""

    cause: str
    permanent: bool


def judge(cause: str, *, at_start: bool) -> Judged:
    """Look at the first line of `cause`; `at_start` says that the query has never run."""
    line, rest = cause.partition("\n")[::2]
    for kind in _PERMANENT:
        found = kind.line.search(line)
        if found is not None and (at_start or not kind.at_start_only):
            told = line if kind.remedy is None else f"{line.rstrip('.')}: {_remedy(kind.remedy, found)}"
            return Judged(f"{told}\n{rest}" if rest else told, permanent=True)
    return Judged(cause, permanent=False)


def _remedy(remedy: str, found: re.Match[str]) -> str:
    name = found.groupdict().get("format", "")
    return remedy.format(package=package_of(name, spark_version))
