"""Settings of Spark that a definition may not have."""

from __future__ import annotations

import json

import pytest

from definition.document import DefinitionError, parse_definition

DECLARED = {"source": {"format": "rate"}, "sink": {"format": "noop"}}
ENTRYPOINT = {"entrypoint": "a:b"}


@pytest.mark.parametrize("document", [DECLARED, ENTRYPOINT])
@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("spark.sql.variable.substitute", ""),
        ("spark.sql.runSQLOnFiles", ""),
        ("SPARK.SQL.RUNSQLONFILES", ""),
        ("spark.sql.catalog.db.url", ""),
        ("Spark.Sql.Catalog.db", ""),
        ("spark.datasource.iceberg.url", "; write what it sets among the options of the source or the sink"),
        ("SPARK.DataSource.x", "; write what it sets among the options of the source or the sink"),
    ],
)
def test_what_would_bring_back_what_is_off_is_refused(
    name: str, instead: str, document: dict[str, object]
) -> None:
    """By its name, in any letters, whatever the value."""
    with pytest.raises(DefinitionError) as refused:
        parse_definition(json.dumps({**document, "spark_conf": {name: "x"}}).encode())
    place = f'spark_conf["{name}"]'
    assert str(refused.value) == f"{place}: is for the worker's --spark-conf only{instead}"


@pytest.mark.parametrize("name", ["sparkherd.heir.9", "SparkHerd.gate.1", "sparkherd."])
def test_what_workers_agree_by_is_refused(name: str) -> None:
    """A query would take its own definition for a newer owner, and nobody could end it."""
    with pytest.raises(DefinitionError, match="names that begin so are sparkherd's own"):
        parse_definition(json.dumps({**DECLARED, "spark_conf": {name: "x"}}).encode())


def test_other_settings_are_the_task_s_own() -> None:
    """Names that only look alike as well."""
    names = ("spark.sql.shuffle.partitions", "spark.sql.catalogs", "spark.datasources.x", "fs.s3a.endpoint")
    conf = dict.fromkeys(names, "1")
    assert parse_definition(json.dumps({**DECLARED, "spark_conf": conf}).encode()).spark_conf == conf
