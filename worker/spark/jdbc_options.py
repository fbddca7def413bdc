"""Options that are no harm: of Spark's, of JDBC drivers' and of tables in catalogs; all in lower case.

What is in none of these lists, a worker has to allow by `--allow-jdbc` (docs/security.md).
"""

from __future__ import annotations

from typing import Final


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


STATEMENTS: Final = frozenset({"sessioninitstatement", "preparequery"})
"""Options of Spark's whose text is sent to the database as it is, beside the query."""
_OF_READING: Final = _names(
    "partitioncolumn lowerbound upperbound numpartitions querytimeout fetchsize batchsize truncate"
    " cascadetruncate customschema isolationlevel pushdownpredicate pushdownaggregate pushdownlimit"
    " pushdownoffset pushdowntablesample pushdownjoin prefertimestampntz"
)
"""Those of Spark's JDBC that neither say where the database is nor have SQL in them."""
OF_SPARK: Final = (
    _OF_READING
    | STATEMENTS
    | _names(
        "url driver dbtable query hint createtableoptions createtablecolumntypes keytab principal"
        " refreshkrb5config connectionprovider tablecomment"
    )
)
"""All of Spark's JDBC (`JDBCOptions`), which the driver is not given; `url` and `driver` have their rules."""

OF_TABLES: Final = _OF_READING | _names(
    # Delta
    "path maxfilespertrigger maxbytespertrigger ignoredeletes ignorechanges skipchangecommits startingversion"
    " startingtimestamp endingversion endingtimestamp readchangefeed readchangedata witheventtimeorder"
    " excluderegex failondataloss versionasof timestampasof schematrackinglocation schemalocation mergeschema"
    " overwriteschema replacewhere partitionoverwritemode usermetadata txnappid txnversion optimizewrite"
    # Iceberg
    " snapshot-id as-of-timestamp branch tag start-snapshot-id end-snapshot-id split-size lookback"
    " file-open-cost vectorization-enabled batch-size stream-from-timestamp"
    " streaming-max-files-per-micro-batch streaming-max-rows-per-micro-batch"
    " streaming-skip-delete-snapshots streaming-skip-overwrite-snapshots locality write-format"
    " target-file-size-bytes check-nullability check-ordering fanout-enabled merge-schema output-spec-id"
    " compression-codec compression-level compression-strategy distribution-mode delete-granularity"
    " isolation-level overwrite-mode"
    # what streams of any format have, and where a task's writer stands
    " maxrowspertrigger checkpointlocation"
)
"""Of tables in catalogs: those of the lakes, and what only says how much of a database is read at a time."""

_POSTGRESQL: Final = _names(
    "adaptivefetch adaptivefetchmaximum adaptivefetchminimum allowencodingchanges applicationname"
    " assumeminserverversion autosave binarytransfer binarytransferdisable binarytransferenable"
    " cancelsignaltimeout channelbinding cleanupsavepoints connecttimeout convertbooleantonumeric"
    " currentschema databasemetadatacachefields databasemetadatacachefieldsmib defaultrowfetchsize"
    " disablecolumnsanitiser escapesyntaxcallmode flushcacheonddl groupstartupparameters gssencmode"
    " gssresponsetimeout hideunprivilegedobjects hostrecheckseconds kerberosservername loadbalancehosts"
    " localsocketaddress logintimeout logservererrordetail logunclosedconnections maxresultbuffer"
    " maxsendbuffersize options password pemkeyalgorithm pgdbname pghost pgport preferquerymode"
    " preparedstatementcachequeries preparedstatementcachesizemib preparethreshold protocolversion"
    " querytimeout quotereturningidentifiers readonly readonlymode receivebuffersize requireauth"
    " rewritebatchedinserts rewritebatchedinsertssize scrammaxiterations sendbuffersize sockettimeout ssl"
    " sslcert sslkey sslmode sslnegotiation sslpassword sslresponsetimeout sslrootcert stringtype"
    " targetservertype tcpkeepalive tcpnodelay unknownlength user"
)
_SQLITE: Final = _names(
    "open_mode shared_cache automatic_index cache_size cache_spill mmap_size case_sensitive_like"
    " count_changes default_cache_size defer_foreign_keys empty_result_callback encoding foreign_keys"
    " full_column_names fullsync incremental_vacuum journal_mode journal_size_limit legacy_alter_table"
    " legacy_file_format locking_mode page_size max_page_count read_uncommitted recursive_triggers"
    " reverse_unordered_selects secure_delete short_column_names synchronous temp_store user_version"
    " application_id wal_autocheckpoint limit_length limit_sql_length limit_column limit_expr_depth"
    " limit_compound_select limit_vdbe_op limit_function_arg limit_attached limit_like_pattern_length"
    " limit_variable_number limit_trigger_depth limit_worker_threads limit_page_count transaction_mode"
    " date_precision date_class date_string_format busy_timeout hexkey_mode password"
    " jdbc.explicit_readonly jdbc.get_generated_keys"
    # of SQLite's own, in the names of files
    " mode cache immutable nolock psow"
)
OF_DRIVERS: Final = {"postgresql": _POSTGRESQL, "sqlite": _SQLITE}
"""By database, those of its driver that load no classes, libraries or logins, and write no files."""
PLAIN: Final = _names(
    "user password database databasename host port servername portnumber usessl requiressl sslmode encrypt"
    " trustservercertificate logintimeout connecttimeout sockettimeout servertimezone connectiontimezone"
    " characterencoding useunicode applicationname"
    # where Oracle's databases are
    " description address_list address protocol connect_data service_name sid"
)
"""Of the drivers that nobody has looked through: where the database is, who reads, and how."""
