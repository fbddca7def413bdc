from __future__ import annotations

import re

import pytest

from worker.spark.causes import describe_remote
from worker.spark.remedies import Judged, judge

NOT_FOUND = (
    "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: {}. Make sure the provider name is correct."
)
REMOTE = """\
Data source jdbc does not support streamed writing.

JVM stacktrace:
org.apache.spark.SparkUnsupportedOperationException
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.x(QueryExecutionErrors.scala:745)"""


@pytest.mark.parametrize("name", ["carrierpigeon", "org.example.Pigeon"])
def test_a_connector_is_asked_for_by_its_name(name: str) -> None:
    """Whose package it is in only its makers know; what follows the line stays as it is."""
    told = judge(f"{NOT_FOUND.format(name)}\n\na trace", at_start=True)
    assert told.permanent
    line, _, rest = told.cause.partition("\n")
    assert line.startswith("[DATA_SOURCE_NOT_FOUND]")
    assert f"--packages GROUP:ARTIFACT:VERSION of {name} " in line
    assert rest == "\na trace"


def test_an_entry_point_s_connector() -> None:
    """The line may have our own words before Spark's."""
    told = judge(f"entrypoint: a:b failed: {NOT_FOUND.format('delta')}", at_start=True)
    assert told.permanent
    assert told.cause.startswith("entrypoint: a:b failed: [DATA_SOURCE_NOT_FOUND]")


@pytest.mark.parametrize(
    "line",
    [
        "[UNRESOLVED_ROUTINE] Cannot resolve routine `java_method` on search path [`system`.`session`].",
        "[UNRESOLVED_ROUTINE] Cannot resolve routine `builtin`.`reflect` on search path [`a`.`b`].",
        "[UNRESOLVED_ROUTINE] Cannot resolve routine `REFLECT` on search path [`system`.`builtin`].",
        "[REQUIRES_SINGLE_PART_NAMESPACE] spark_catalog requires one, got `system`.`builtin`.`try_reflect`.",
    ],
)
def test_what_calls_java_is_told_apart_from_what_there_never_was(line: str) -> None:
    """A name that is only misspelt has no such remedy."""
    told = judge(line, at_start=True)
    assert told.permanent
    assert "is off in the sql of a task: move it to an entry point (--allow-entrypoint)" in told.cause
    misspelt = re.sub("method|reflect", "misspelt", line, flags=re.IGNORECASE)
    assert "--allow-entrypoint" not in judge(misspelt, at_start=True).cause


@pytest.mark.parametrize(
    ("line", "to_do"),
    [
        (
            "[DELTA_CONFIGURE_SPARK_SESSION_WITH_EXTENSION_AND_CATALOG] This has to be configured with the",
            "configured with the: settings spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension and",
        ),
        (
            "[REQUIRES_SINGLE_PART_NAMESPACE] spark_catalog requires one part, but got `lake`.`shop`.",
            "`lake`.`shop`: if the first name is a catalog's, tell the group's workers of it with",
        ),
        ("SQLException: No suitable driver", "driver: name its class in the options, as in driver: org."),
    ],
)
def test_what_a_connector_needs_besides_its_package(line: str, to_do: str) -> None:
    """A setting of the workers, or an option, that no other try brings."""
    told = judge(f"{line}\n\na trace", at_start=True)
    assert told.permanent
    assert to_do in told.cause.partition("\n")[0]


@pytest.mark.parametrize(
    ("name", "is_file"),
    [
        ("`csv`.`/data/x.csv`", True),
        ("`parquet`.`s3a://bucket/x`", True),
        ("`json`.`x.json`", True),
        ("`text`.`in*`", True),
        ("`flights`.`delays`", False),
        ("`spark_catalog`.`flights`.`delays`", False),
        ("`delays`", False),
    ],
)
def test_a_file_in_place_of_a_table(*, name: str, is_file: bool) -> None:
    """A table may still be made by somebody; a file is not read, however often it is tried."""
    line = f"[TABLE_OR_VIEW_NOT_FOUND] The table or view {name} cannot be found. Verify the spelling"
    told = judge(line, at_start=True)
    assert ("--spark-conf spark.sql.runSQLOnFiles=true" in told.cause) is is_file
    assert told.permanent is is_file


@pytest.mark.parametrize(
    "line",
    [
        "SparkIllegalArgumentException: Schema must be specified when creating a streaming source DataFrame.",
        "SparkIllegalArgumentException: 'path' is not specified.",
        "ClassNotFoundException: Class org.apache.hadoop.fs.s3a.S3AFileSystem not found",
        'UnsupportedFileSystemException: No FileSystem for scheme "foo"',
        "[STREAMING_OUTPUT_MODE.UNSUPPORTED_DATASOURCE] Invalid streaming output mode: update.",
    ],
)
def test_what_the_definition_or_the_worker_lacks(line: str) -> None:
    """However often it is tried."""
    assert judge(line, at_start=True).permanent
    assert judge(line, at_start=False).permanent


@pytest.mark.parametrize("line", ["[PATH_NOT_FOUND] Path does not exist: /a.", "[UNRESOLVED_COLUMN.A] no b"])
def test_what_a_query_that_has_run_may_find_again(line: str) -> None:
    """A folder that was there before may be there again, and a table have its column."""
    assert judge(line, at_start=True).permanent
    assert judge(line, at_start=False) == Judged(line, permanent=False)


@pytest.mark.parametrize(
    "cause",
    [
        "the database postgresql://a/b refused: connection refused",
        "[TABLE_OR_VIEW_NOT_FOUND] The table or view `a` cannot be found.",
        f"OSError: the network is gone\n\n{NOT_FOUND.format('delta')}",
    ],
)
def test_what_may_pass(cause: str) -> None:
    """Is left as it is; only the first line counts."""
    assert judge(cause, at_start=True) == Judged(cause, permanent=False)


def test_behind_spark_connect() -> None:
    """The class of an error without a condition comes in the line after its message."""
    cause = describe_remote(REMOTE)
    said = "SparkUnsupportedOperationException: Data source jdbc does not support streamed writing."
    assert cause.partition("\n")[0] == said
    assert judge(cause, at_start=True).permanent


OUTAGES = [
    "TimeoutException: Timed out waiting for a node assignment. Call: listNodes",
    "TimeoutException: Timed out waiting to send the call. Call: listTopics",
    "TimeoutException: Call(callName=listOffsets on broker 1, deadlineMs=1, tries=1) timed out at 2",
    "TimeoutException: Timeout of 60000ms expired before the position for partition t-0 could be determined",
    "source: no broker of k:9092 answers (ConfigException: No resolvable bootstrap urls given)",
    "StreamingQueryException: TimeoutException: Cannot fetch record for offset 3 in 120000 milliseconds",
]


@pytest.mark.parametrize("line", OUTAGES)
@pytest.mark.parametrize("at_start", [True, False])
def test_brokers_that_do_not_answer_are_an_outage(*, line: str, at_start: bool) -> None:
    """Which is no failure of the task's, and says what may be wrong with the options all the same."""
    told = judge(f"{line}\nat x", at_start=at_start)
    assert (told.permanent, told.outage) == (False, True)
    assert "kafka.security.protocol" in told.cause.partition("\n")[0]


@pytest.mark.parametrize(
    "line",
    ["TimeoutException: Futures timed out after [300 seconds]", "java.util.concurrent.TimeoutException"],
)
def test_not_all_that_takes_too_long_is_a_broker(line: str) -> None:
    """A broadcast of Spark's, for one."""
    assert judge(line, at_start=False) == Judged(line, permanent=False)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (
            "UnknownTopicOrPartitionException: This server does not host this topic-partition.",
            "create the topic",
        ),
        (
            "OffsetOutOfRangeException: Fetch position is out of range for partition t-0",
            "failOnDataLoss: false",
        ),
        ("KafkaIllegalStateException: Some data may have been lost because", "`sparkherd tasks reset`"),
        ("[KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE] Some data may", "`sparkherd tasks reset`"),
    ],
)
def test_what_a_topic_lacks_is_tried_again_and_has_its_remedy(line: str, says: str) -> None:
    """The next start asks the brokers, and says which topic and which offsets."""
    told = judge(line, at_start=False)
    assert (told.permanent, told.outage) == (False, False)
    assert says in told.cause


@pytest.mark.parametrize(
    "line",
    [
        "SaslAuthenticationException: Authentication failed: Invalid username or password",
        "SunCertPathBuilderException: unable to find valid certification path to requested target",
    ],
)
def test_a_wrong_password_or_authority_is_permanent_at_a_start_only(line: str) -> None:
    """A query that ran may have lost its broker to a change of passwords: its next start has the new ones."""
    told = judge(line, at_start=True)
    assert told.permanent
    assert "`sparkherd tasks restart`" in told.cause
    assert judge(line, at_start=False) == Judged(line, permanent=False)


@pytest.mark.parametrize(
    ("line", "to_do"),
    [
        (
            "[DELTA_VERSIONS_NOT_CONTIGUOUS] Versions (0, 2) are",
            "bring them back from a copy",
        ),
        ("the table /t: [DELTA_TRUNCATED_TRANSACTION_LOG] /t: Unable to", "bring them back from a copy"),
        (
            "[DELTA_CONCURRENT_APPEND.WITHOUT_HINT] Transaction",
            "is written again with the next start",
        ),
        ("FileNotFoundException: /t/a.tmp (Operation not permitted)", "lacks a right there: grant it"),
        ("PSQLException: ERROR: permission denied for table iceberg_tables", "lacks a right there"),
        (
            "[SQLITE_CANTOPEN] Unable to open the database file (unable to open database file)",
            "lacks a right",
        ),
        ("[SQLITE_READONLY] attempt to write a readonly database", "lacks a right there"),
        (
            "the table /t: [DELTA_CANNOT_CREATE_LOG_PATH] Cannot create file:/t/_delta_log",
            "lacks a right there",
        ),
    ],
)
def test_what_a_table_s_keeper_can_mend(line: str, to_do: str) -> None:
    """The task tries again: it may be mended meanwhile."""
    told = judge(line, at_start=True)
    assert to_do in told.cause
    assert not told.permanent
