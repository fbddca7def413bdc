"""Which settings of Spark a definition may not have (`spark_conf`, protocol §6)."""

from __future__ import annotations

from typing import Final

SUBSTITUTE: Final = "spark.sql.variable.substitute"
"""Has Spark fill `${env:NAME}` in SQL from its own environment."""
SQL_ON_FILES: Final = "spark.sql.runSQLOnFiles"
"""Lets SQL read files by their names, as in `` csv.`/data/x.csv` ``."""
_CATALOGS: Final = "spark.sql.catalog."
"""What begins so has Spark make objects of any class, such as one that sends statements to any database."""
_OPTIONS: Final = "spark.datasource."
"""`spark.datasource.FORMAT.NAME` is the option NAME of sources and sinks of a format (Spark's
`SessionConfigSupport`), which nobody would see where options are looked at."""

_OURS: Final = "sparkherd."
"""By which a worker and the process that does its query's batches on a Spark Connect server agree."""

_WORKERS: Final = "is for the worker's --spark-conf only"
_AS_OPTIONS: Final = f"{_WORKERS}; write what it sets among the options of the source or the sink"


def setting_fault(name: str) -> str | None:
    """Why a definition cannot set what is called so, if it cannot. It is refused in any letters."""
    lower = name.lower()
    if lower.startswith(_OURS):
        return "is none of Spark's settings: names that begin so are sparkherd's own"
    if lower.startswith(_OPTIONS):
        return _AS_OPTIONS
    if lower in {SUBSTITUTE.lower(), SQL_ON_FILES.lower()} or lower.startswith(_CATALOGS):
        return _WORKERS
    return None
