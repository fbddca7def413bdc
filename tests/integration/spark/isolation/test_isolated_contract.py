from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.contracts.query_engine import CONTRACT
from tests.integration.spark.test_spark_contract import SparkBench

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from tests.contracts.query_engine import Bench


@pytest.mark.parametrize("clause", CONTRACT, ids=lambda clause: clause.__name__)
async def test_isolated_queries_keep_the_contract(
    clause: Callable[[Bench], Awaitable[None]],
    start_isolated: Any,
    flights: Any,
    database: Any,
    tmp_path: Path,
) -> None:
    """What the worker relies on is the same with a JVM for each of them."""
    await clause(SparkBench(start_isolated, flights, database, tmp_path))
