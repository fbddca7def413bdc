"""Which queries may be taken over as they run: by what they are made of, and by what is left."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from definition.document import parse_definition
from protocol.messages.tasks import TaskReset
from worker.query_engine import QuerySpec
from worker.spark import adoption
from worker.spark.adoption import made_of
from worker.spark.settings import SparkSettings

SETTINGS = SparkSettings(app_name="a", checkpoint_root="/c", conf={"spark.sql.shuffle.partitions": "2"})
PLAIN: dict[str, Any] = {
    "source": {"format": "rate", "options": {"b": "1", "a": "2"}},
    "sink": {"format": "sql", "options": {"url": "sqlite:///x", "table": "t"}},
}


def spec(task: str = "t", token: int = 1, reset: TaskReset | None = None, **more: Any) -> QuerySpec:
    """What a worker was granted."""
    definition = parse_definition(msgspec.json.encode(PLAIN | more))
    return QuerySpec("g", task, token, definition, reset)


def test_the_same_query_is_made_of_the_same() -> None:
    """Whoever owns it, and in whatever order its definition names things."""
    turned = {"options": {"a": "2", "b": "1"}, "format": "rate"}
    assert made_of(spec(token=1), SETTINGS) == made_of(spec(token=9, source=turned), SETTINGS)


@pytest.mark.parametrize(
    "other",
    [
        spec(task="u"),
        spec(sql="SELECT * FROM source"),
        spec(trigger={"processing_time": "1 second"}),
        spec(spark_conf={"spark.sql.ansi.enabled": "true"}),
        spec(reset=TaskReset(number=1, offsets="earliest")),
    ],
)
def test_what_differs_is_another_query(other: QuerySpec) -> None:
    """Its rows could be others, or go elsewhere."""
    assert made_of(other, SETTINGS) != made_of(spec(), SETTINGS)


def test_settings_and_versions_of_workers_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """A herd that is brought to another version runs all its queries by that one in the end."""
    made = made_of(spec(), SETTINGS)
    assert made_of(spec(), msgspec.structs.replace(SETTINGS, conf={})) != made
    monkeypatch.setattr(adoption, "version", lambda _: "0.0.0")
    assert made_of(spec(), SETTINGS) != made
