"""Failures that are known: whether another try may help, and what a person can do; rules without I/O.

They go by the line in which Spark says what is wrong: it is the same in a JVM of the worker's own and behind
Spark Connect, where the class of an exception does not arrive.
"""

from __future__ import annotations

import re
from enum import Enum
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
    "put such rows aside with on_error: quarantine of the task, have null for what Spark cannot read of them"
    " with on_error: null of the value or key, or begin behind it with `sparkherd tasks reset --offset`"
)
_VIOLATED = (
    "if such rows are not to stop the task, give the expectation on_violation: quarantine, which puts them"
    " aside, or drop"
)
_TOO_MANY = (
    "something else is wrong than a row: mend that, or raise the bound, then `sparkherd tasks restart`"
)
_TOGETHER = (
    "it has a trigger that is about several rows at once, or other sessions change what it compares them"
    " with: change that, or leave on_error: quarantine out, then `sparkherd tasks restart`"
)
_DELTA = (
    "settings spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension and"
    " spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog, each by --spark-conf"
    " on the group's workers"
)
_CATALOG = (
    "if the first name is a catalog's, tell the group's workers of it with"
    " --spark-conf spark.sql.catalog.NAME=CLASS and its settings"
)
_DRIVER = (
    "name its class in the options, as in driver: org.postgresql.Driver, and start the group's workers with"
    " the package that has it"
)
_RESTART = "`sparkherd tasks restart` when it is there"
_BROKERS = (
    "is kafka.bootstrap.servers right, and kafka.security.protocol that of its listener? The task goes on by"
    " itself when a broker answers"
)
_LOGIN = "correct its kafka.sasl or kafka.ssl options or their secrets, then `sparkherd tasks restart`"
_OAUTH_URL = (
    "allow it on the group's workers with --spark-conf"
    " spark.driver.extraJavaOptions=-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=URL"
)
_AUTHORITY = (
    "the certificate is of an authority that nobody here trusts; name that one, of Kafka with"
    " kafka.ssl.truststore.location, then `sparkherd tasks restart`"
)
_TOPIC = "create the topic, or correct the source's options"
_LOG_TORN = (
    "files of the table's _delta_log were deleted: bring them back from a copy, and the task goes on where it"
    " was; without one, make the table anew and reset the task"
)
_COLLIDED = (
    "somebody else's commit, such as of OPTIMIZE, met the batch; it is written again with the next start"
)
_NO_RIGHT = (
    "the account that the worker runs as, or logs in with, lacks a right there: grant it, and the task goes"
    " on with its next start"
)
_LOSS = (
    "retention, or a topic that was made anew, has taken rows that the checkpoint wants: accept that with"
    " `failOnDataLoss: false` in the source's options, or begin anew with `sparkherd tasks reset`"
)


class Outlook(Enum):
    """What comes of another try: the same, perhaps something else, or nothing while somebody is away."""

    SAME = "same"
    OPEN = "open"
    OUTAGE = "outage"


class KnownFailure(NamedTuple):
    """A kind of failure: what its line looks like, and what to do, if Spark does not say so itself.

    `at_start_only` says that of a query that has run before it may pass by itself.
    """

    line: re.Pattern[str]
    remedy: str | None = None
    at_start_only: bool = False
    outlook: Outlook = Outlook.SAME


_KNOWN = (
    KnownFailure(
        re.compile(r"\[\w+_DATA_SOURCE_NOT_ENABLED\] Failed to find data source: (?P<format>[\w.]+?)\. "),
        _INSTALL,
    ),
    KnownFailure(
        re.compile(r"\[DATA_SOURCE_NOT_FOUND\] Failed to find the data source: (?P<format>[\w.]+?)\. "),
        _INSTALL,
    ),
    KnownFailure(
        re.compile(r'No FileSystem for scheme "|Class org\.apache\.hadoop\.fs\.[\w.]+ not found'),
        _INSTALL.format(package="GROUP:ARTIFACT:VERSION of that file system"),
    ),
    KnownFailure(
        re.compile(
            r"(?i)\[(?:UNRESOLVED_ROUTINE|ROUTINE_NOT_FOUND|REQUIRES_\w+)\]"
            r" .*`(?:java_method|(?:try_)?reflect)`"
        ),
        _JAVA,
    ),
    KnownFailure(re.compile(r"\[REQUIRES_SINGLE_PART_NAMESPACE\] .*`system`\.`builtin`(?!\.`)"), _NO_BUILTIN),
    KnownFailure(
        re.compile(r"\[TABLE_OR_VIEW_NOT_FOUND\] The table or view `\w+`\.`[^`]*[/:.*][^`]*` cannot"), _FILES
    ),
    KnownFailure(re.compile(r"\[DELTA_CONFIGURE_SPARK_SESSION_WITH_EXTENSION_AND_CATALOG\]"), _DELTA),
    KnownFailure(re.compile(r"\[REQUIRES_SINGLE_PART_NAMESPACE\] spark_catalog requires"), _CATALOG),
    KnownFailure(
        re.compile(r"\[DELTA_(?:VERSIONS_NOT_CONTIGUOUS|TRUNCATED_TRANSACTION_LOG)\]"),
        _LOG_TORN,
        outlook=Outlook.OPEN,
    ),
    KnownFailure(
        re.compile(r"\[DELTA_(?:CONCURRENT_\w+|METADATA_CHANGED)[\].]"), _COLLIDED, outlook=Outlook.OPEN
    ),
    KnownFailure(
        re.compile(
            r"(?i)permission denied|operation not permitted|read-?only (?:file system|database)"
            r"|\[SQLITE_CANTOPEN\]|AccessDeniedException|\[DELTA_CANNOT_CREATE_LOG_PATH\]"
        ),
        _NO_RIGHT,
        outlook=Outlook.OPEN,
    ),
    KnownFailure(re.compile(r"SQLException: No suitable driver"), _DRIVER),
    KnownFailure(re.compile(r", partition \d+, offset \d+: cannot be taken apart as \w+"), _UNREADABLE),
    KnownFailure(re.compile(r"\bexpect\[\d+\]: \w+ is violated by a row"), _VIOLATED),
    KnownFailure(re.compile(r"rows would be put aside, (?:more than|which have)"), _TOO_MANY),
    KnownFailure(re.compile(r"tries to find the rows that the database refuses were too many"), _TOGETHER),
    KnownFailure(re.compile(r"does not support streamed (?:reading|writing)")),
    KnownFailure(re.compile(r"\[UNSUPPORTED_FEATURE\.")),
    KnownFailure(re.compile(r"\[PATH_NOT_FOUND\]"), _RESTART, at_start_only=True),
    KnownFailure(re.compile(r"'path' is not specified"), "add `path` to the options"),
    KnownFailure(
        re.compile(r"Schema must be specified when creating a streaming source"), "add source.schema"
    ),
    KnownFailure(re.compile(r"\[PARSE_SYNTAX_ERROR\]|\[STREAMING_OUTPUT_MODE\.|\[CANNOT_MODIFY_CONFIG\]")),
    KnownFailure(
        re.compile(r"\[UNRESOLVED_COLUMN\.|\[UNRESOLVED_ROUTINE\]|\[DATATYPE_MISMATCH\."), at_start_only=True
    ),
    KnownFailure(
        re.compile(
            r"TimeoutException: (?:Timed out waiting (?:for a node assignment|to send the call)"
            r"|Call\(callName=|Timeout of \d+ms expired|Cannot fetch record for offset"
            r"|Failed to (?:get offsets by times|update metadata))"
            r"|No resolvable bootstrap urls|\bDisconnectException"
        ),
        _BROKERS,
        outlook=Outlook.OUTAGE,
    ),
    KnownFailure(re.compile(r"S(?:asl|sl)AuthenticationException: "), _LOGIN, at_start_only=True),
    KnownFailure(re.compile(r"is not allowed\. Update system property '[\w.]*oauthbearer"), _OAUTH_URL),
    KnownFailure(re.compile(r"SunCertPathBuilderException: "), _AUTHORITY, at_start_only=True),
    KnownFailure(re.compile(r"UnknownTopicOrPartitionException: "), _TOPIC, outlook=Outlook.OPEN),
    KnownFailure(
        re.compile(
            r"\[KAFKA_DATA_LOSS\.|OffsetOutOfRangeException: |KafkaIllegalStateException: Some data may have"
        ),
        _LOSS,
        outlook=Outlook.OPEN,
    ),
    KnownFailure(
        re.compile(
            r"kafka\.bootstrap\.servers' must be specified|for Kafka source: subscribe|Kafka option '"
            r"|Could not find a 'KafkaClient' entry|(?:Config|PatternSyntax)Exception: "
        ),
        at_start_only=True,
    ),
)


class Judged(NamedTuple):
    """A cause with what to do about it, and whether another try would end the same way.

    `outage` says that somebody is away, who may come back at any time.
    """

    cause: str
    permanent: bool
    outage: bool = False


def judge(cause: str, *, at_start: bool) -> Judged:
    """Look at the first line of `cause`; `at_start` says that the query has never run."""
    line, rest = cause.partition("\n")[::2]
    for kind in _KNOWN:
        found = kind.line.search(line)
        if found is not None and (at_start or not kind.at_start_only):
            told = line if kind.remedy is None else f"{line.rstrip('.')}: {_remedy(kind.remedy, found)}"
            return Judged(
                f"{told}\n{rest}" if rest else told,
                permanent=kind.outlook is Outlook.SAME,
                outage=kind.outlook is Outlook.OUTAGE,
            )
    return Judged(cause, permanent=False)


def _remedy(remedy: str, found: re.Match[str]) -> str:
    name = found.groupdict().get("format", "")
    return remedy.format(package=package_of(name, spark_version))
