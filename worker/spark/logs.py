"""What is for the worker's log, and what of PySpark's is not."""

from __future__ import annotations

import logging
import warnings
from typing import TYPE_CHECKING

import structlog
from pyspark.logger import PySparkLogger

if TYPE_CHECKING:
    from worker.sinks.marks import Owner

log = structlog.get_logger(__name__)


def tell_of_refusal(owner: Owner, by: str, why: str) -> None:
    """A write of a zombie that came to nothing: what an operator wants to count."""
    log.warning("write refused", group=owner.group, task=owner.task, token=owner.token, by=by, why=why)


def quieten_pyspark() -> None:
    """What it says of pandas, and of failures that become tasks' causes, is not for the worker's log."""
    warnings.filterwarnings(
        "ignore", message="PySpark does not yet fully support pandas", category=FutureWarning
    )
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)
