"""Where a Delta table has to be for its commits to be a fence; rules without I/O.

Of two commits of one version exactly one may be told that it is in the table. Delta leaves that to a *log
store*, and those for local disks and for S3 do not keep to it between two drivers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from worker.sinks.delta.marks import Seen

LINK_STORE: Final = "sparkherd.delta.LinkLogStore"
PUT_STORE: Final = "sparkherd.delta.PutLogStore"
_DELTAS: Final = ("io.delta.storage.", "org.apache.spark.sql.delta.storage.")
_S3: Final = {"s3", "s3a", "s3n"}
_ATOMIC: Final = {
    "hdfs": "HDFSLogStore",
    "gs": "GCSLogStore",
    **dict.fromkeys(("abfs", "abfss", "adl", "wasb", "wasbs"), "AzureLogStore"),
    **dict.fromkeys(_S3, "S3DynamoDBLogStore"),
}
"""Where one of Delta's own log stores puts a commit into its place in one step, or asks somebody who does."""
_APPEND_ONLY: Final = "delta.appendOnly"
RETENTION: Final = "delta.setTransactionRetentionDuration"
_COORDINATED: Final = ("catalogManaged", "catalogOwned-preview")
_WHERE: Final = "by --spark-conf on the group's workers (with --spark-remote, at the server's start)"


def place_fault(path: str, log_store: str) -> str | None:
    """Why commits to a table there are no fence, and which setting is missing; None if they are one."""
    scheme = path.partition(":")[0] if ":" in path else "file"
    if scheme == "file":
        if log_store == LINK_STORE:
            return None
        return (
            f"two drivers may both be told that they have committed the same version of {path}: set"
            f" spark.delta.logStore.file.impl={LINK_STORE} {_WHERE}, and for whoever else writes to the table"
        )
    if _is_safe(scheme, log_store):
        return None
    if scheme in _S3:
        return (
            f"{log_store.rpartition('.')[2]} is for one driver only in S3: set"
            f" spark.delta.logStore.{scheme}.impl={PUT_STORE} {_WHERE}, and for whoever else writes to the"
            " table; the store has to know If-None-Match, as S3 does"
        )
    if scheme in _ATOMIC:
        return (
            f"whether two drivers can commit the same version of {path} through"
            f" {log_store.rpartition('.')[2]} is not known: leave spark.delta.logStore.{scheme}.impl and"
            f" spark.delta.logStore.class out, for Delta's own {_ATOMIC[scheme]}, {_WHERE}"
        )
    return (
        f"whether two drivers can commit the same version of {path} is not known: set"
        f" spark.delta.logStore.{scheme}.impl to a log store that refuses a file that is there {_WHERE}"
    )


def _is_safe(scheme: str, log_store: str) -> bool:
    """A log store of somebody else's is believed to be for the scheme that it is set for."""
    if log_store in {LINK_STORE, PUT_STORE}:
        return log_store == PUT_STORE and scheme in _S3
    if log_store.startswith(_DELTAS):
        return log_store.rpartition(".")[2] == _ATOMIC.get(scheme)
    return True


def mode_fault(seen: Seen, mode: str) -> str | None:
    """Why rows cannot go to this table in this mode, None if they can."""
    if mode == "append" or seen.configuration.get(_APPEND_ONLY, "").lower() != "true":
        return None
    return f"sink.options.mode: the table {seen.path} takes append only ({_APPEND_ONLY} = true)"


def table_fault(seen: Seen) -> str | None:
    """Why the fence would not last in this table, None if it does."""
    if RETENTION in seen.configuration:
        return (
            f"the table {seen.path} forgets who has written to it ({RETENTION}"
            f" = {seen.configuration[RETENTION]}): ALTER TABLE … UNSET TBLPROPERTIES ('{RETENTION}')"
        )
    if kept := [feature for feature in seen.features if feature in _COORDINATED]:
        return f"the table {seen.path} is managed by its catalog ({kept[0]}), which is not supported"
    return None
