"""Options by JDBC that are no harm: Spark's, and those of JDBC drivers; all in lower case.

What is in none of these lists, a worker has to allow by `--allow-jdbc` (docs/security.md).
"""

from __future__ import annotations

from typing import Final


def names(text: str) -> frozenset[str]:
    """Those in a text, which has blanks between them."""
    return frozenset(text.split())


STATEMENTS: Final = frozenset({"sessioninitstatement", "preparequery"})
"""Options of Spark's whose text is sent to the database as it is, beside the query."""
READING: Final = names(
    "partitioncolumn lowerbound upperbound numpartitions querytimeout fetchsize batchsize truncate"
    " cascadetruncate customschema isolationlevel pushdownpredicate pushdownaggregate pushdownlimit"
    " pushdownoffset pushdowntablesample pushdownjoin prefertimestampntz"
)
"""Those of Spark's JDBC that neither say where the database is nor have SQL in them."""
OF_SPARK: Final = (
    READING
    | STATEMENTS
    | names(
        "url driver dbtable query hint createtableoptions createtablecolumntypes keytab principal"
        " refreshkrb5config connectionprovider tablecomment"
    )
)
"""All of Spark's JDBC (`JDBCOptions`), which the driver is not given; `url` and `driver` have their rules."""

_POSTGRESQL: Final = names(
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
_SQLITE: Final = names(
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
PLAIN: Final = names(
    "user password database databasename host port servername portnumber usessl requiressl sslmode encrypt"
    " trustservercertificate logintimeout connecttimeout sockettimeout servertimezone connectiontimezone"
    " characterencoding useunicode applicationname"
    # where Oracle's databases are
    " description address_list address protocol connect_data service_name sid"
)
"""Of the drivers that nobody has looked through: where the database is, who reads, and how."""
