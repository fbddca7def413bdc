"""Options of tables that are no harm to whichever catalog has the table; all in lower case.

A table's name does not say what it is: of a catalog by JDBC its options are put in place of the connection's
own, and the database's driver is given what Spark does not know. So what passes is what lakes and files
have by name, and what only says how much of a database is read at a time (docs/security.md).
"""

from __future__ import annotations

from typing import Final

from worker.spark.reading.jdbc_options import READING, names

OF_DELTA: Final = names(
    "path checkpointlocation queryname compression parquet.writer.version maxrecordsperfile"
    " maxfilespertrigger maxbytespertrigger ignoredeletes ignorechanges ignorefiledeletion skipchangecommits"
    " failondataloss excluderegex startingversion startingtimestamp endingversion endingtimestamp"
    " readchangefeed readchangedata versionasof timestampasof schematrackinglocation schemalocation"
    " streamingsourcetrackingid allowsourcecolumndrop allowsourcecolumnrename allowsourcecolumntypechange"
    " mergeschema overwriteschema replacewhere replaceon replaceusing targetalias partitionoverwritemode"
    " usenullintolerantequalitywithdpo writepartitioncolumns usermetadata txnappid txnversion optimizewrite"
    " datachange spark.sql.parquet.outputtimestamptype"
)
OF_ICEBERG: Final = names(
    "path snapshot-id as-of-timestamp branch tag versionasof timestampasof start-snapshot-id end-snapshot-id"
    " start-timestamp end-timestamp split-size lookback file-open-cost vectorization-enabled batch-size"
    " locality aggregate-push-down-enabled stream-from-timestamp streaming-max-files-per-micro-batch"
    " streaming-max-rows-per-micro-batch streaming-skip-delete-snapshots"
    " streaming-skip-overwrite-snapshots streaming-snapshot-polling-interval-ms"
    " async-micro-batch-planning-enabled async-queue-preload-file-limit async-queue-preload-row-limit"
    " write-format delete-format target-file-size-bytes target-delete-file-size-bytes check-nullability"
    " check-ordering fanout-enabled merge-schema mergeschema output-spec-id output-sort-order-id"
    " use-table-distribution-and-ordering distribution-mode overwrite-mode isolation-level"
    " validate-from-snapshot-id compression-codec compression-level compression-strategy"
    " advisory-partition-size delete-granularity shred-variants variant-inference-buffer-size"
    " use-merge-append-for-streaming"
)
OF_FILES: Final = names(
    # csv, json, xml, text, parquet, orc, avro
    "allowbackslashescapinganycharacter allowcomments allownonnumericnumbers allownumericleadingzeros"
    " allowsinglequotes allowunquotedcontrolchars allowunquotedfieldnames arrayelementname attributeprefix"
    " avroschema avroschemaurl charset chartoescapequoteescaping codec columnnameofcorruptrecord"
    " columnpruning comment compression dateformat datetimerebasemode declaration delimiter"
    " dropfieldifallnull emptyvalue enabledatetimeparsingfallback enablestableidentifiersforuniontype"
    " encoding enforceschema escape escapequotes excludeattribute extension header ignoreextension"
    " ignoreleadingwhitespace ignorenamespace ignorenullfields ignoresurroundingspaces"
    " ignoretrailingwhitespace indent inferschema infertimestamp inputbuffersize int96rebasemode linesep"
    " locale maxcharspercolumn maxcolumns mergeschema mode multiline nanvalue negativeinf nullvalue"
    " orc.compress parquet.compression positionalfieldmatching positiveinf preferdate prefersdecimal pretty"
    " primitivesasstring quote quoteall recordname recordnamespace recursivefieldmaxdepth roottag rowtag"
    " rowvalidationxsdpath samplingratio sep singlevariantcolumn stableidentifierprefixforuniontype timezone"
    " timestampformat timestampntzformat unescapedquotehandling uselegacyxmlparser useunsaferow"
    " validatename valuetag wholetext wildcardcolname writenonasciicharacterascodepoint"
    # of all of them
    " ignorecorruptfiles ignoremissingfiles ignoreinvalidpartitionpaths basepath pathglobfilter"
    " recursivefilelookup modifiedbefore modifiedafter"
)
_OF_FILE_STREAMS: Final = names(
    "latestfirst maxfileage maxcachedfiles discardcachedinputratio filenameonly cleansource sourcearchivedir"
    " retention"
)
_OF_ANY_STREAM: Final = names("maxrowspertrigger witheventtimeorder")
NAMES: Final = READING | OF_DELTA | OF_ICEBERG | OF_FILES | _OF_FILE_STREAMS | _OF_ANY_STREAM
HADOOP_S: Final = ("fs.", "dfs.")
"""Settings of file systems begin so; Iceberg does not take them from options."""
PREFIXES: Final = (*HADOOP_S, "parquet.", "orc.", "snapshot-property.")
"""No driver has settings that begin so."""


def is_of_tables(option: str) -> bool:
    """Whether an option, in lower case, is a lake's or of files, or says how much of a database is read."""
    return option in NAMES or option.startswith(PREFIXES)
