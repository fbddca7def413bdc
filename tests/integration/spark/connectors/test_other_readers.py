"""What the fenced sinks write, read by engines that are not Spark: `deltalake` and `pyiceberg`."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaProtocolError
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from tests.integration.spark.connectors.lake_cases import CASES, Batch, Case
from tests.integration.spark.connectors.other_readers import Delta, Iceberg, Lake, multiset, rows_of, shapes

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture(params=[Delta, Iceberg])
def lake(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Lake:
    made: Lake = request.param(spark, tmp_path)
    return made


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_another_engine_reads_what_was_written(lake: Lake, case: Case) -> None:
    """Each row as often as it came, all values and types included."""
    lake.fill(case)
    found = lake.read()
    rows = [row for batch in case.batches for row in batch.rows] if case.left is None else case.left
    columns = to_arrow_schema(cast("StructType", StructType.fromDDL(case.batches[-1].columns)))
    assert shapes(found.schema) == shapes(columns, lake.narrowest)
    assert multiset(rows_of(found)) == multiset(rows)


def test_which_values_delta_cannot_lay_apart(lake: Lake) -> None:
    """What stands for NULL in the name of a folder is NULL in its tables."""
    values = ("", "__HIVE_DEFAULT_PARTITION__", "null")
    batch = Batch("id INT, part STRING", tuple(enumerate(values)))
    lake.fill(Case("folded", (batch,), partition_by=("part",)))
    found = dict(rows_of(lake.read()))
    assert found == dict(enumerate((None, None, "null") if isinstance(lake, Delta) else values))


def test_what_a_user_turns_on_in_delta_is_read_by_the_engine_in_rust(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Deletion vectors, mapped columns, clustering, v2 checkpoints; by pyarrow they are not."""
    lake = Delta(spark, tmp_path)
    case = next(case for case in CASES if case.options.get("mode") == "upsert")
    case = case._replace(partition_by=(), options={**case.options, "cluster_by": ["region"]})
    turned_on = {"enableDeletionVectors": "true", "columnMapping.mode": "name", "checkpointPolicy": "v2"}
    lake.fill(
        case._replace(
            conf={f"spark.databricks.delta.properties.defaults.{k}": v for k, v in turned_on.items()}
        )
    )
    assert list(tmp_path.rglob("deletion_vector_*.bin"))
    assert multiset(rows_of(lake.read())) == multiset(case.left or ())
    with pytest.raises(DeltaProtocolError, match="not yet supported"):
        DeltaTable(lake.path).to_pyarrow_table()
