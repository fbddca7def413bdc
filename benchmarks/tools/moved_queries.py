"""The queries whose moves are timed: as tasks, and as anybody would write them. They always have input."""

from __future__ import annotations

from typing import Any, Final

ROWS: Final = 100
"""Of a batch."""
EVERY_S: Final = 2
EVERY: Final = f"{EVERY_S} seconds"
SOURCE_FORMAT: Final = "rate-micro-batch"
SOURCE_OPTIONS: Final = {"rowsPerBatch": str(ROWS)}
COPIED: Final = "SELECT value FROM source"
COUNTED: Final = "SELECT value % 10 AS digit, COUNT(*) AS n FROM source GROUP BY value % 10"
STATELESS: Final = tuple(f"copied{number}" for number in range(6))
STATEFUL: Final = tuple(f"counted{number}" for number in range(6))
TASKS: Final = (*STATELESS, *STATEFUL)
CONF: Final = {
    "spark.driver.memory": "512m",
    "spark.sql.shuffle.partitions": "1",
    # As the demo and the tests have it: compilers of three JVMs would take what is left of two processors.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def definition(task: str, database: str) -> dict[str, Any]:
    """Of one task, into a table of its own."""
    options: dict[str, Any] = {"url": database, "table": task}
    counts = task in STATEFUL
    if counts:
        options |= {"mode": "upsert", "key": ["digit"]}
    return {
        "source": {"format": SOURCE_FORMAT, "options": SOURCE_OPTIONS},
        "sql": COUNTED if counts else COPIED,
        "sink": {"format": "sql", "options": options},
        "output_mode": "update" if counts else "append",
        "trigger": {"processing_time": EVERY},
    }
