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
async def test_connect_keeps_the_contract(
    clause: Callable[[Bench], Awaitable[None]], start: Any, flights: Any, database: Any, tmp_path: Path
) -> None:
    """The same queries, behind a real Spark Connect server."""
    await clause(SparkBench(start, flights, database, tmp_path))
