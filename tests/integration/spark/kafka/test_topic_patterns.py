"""How much work a pattern of topics may be, in the JVM that matches it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from worker.query_engine import QueryError
from worker.spark.classic import kafka_topics
from worker.spark.classic.backend import ClassicBackend
from worker.spark.classic.kafka import KafkaBrokers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from worker.spark.classic.kafka_topics import KafkaTopics
    from worker.spark.engine import SparkEngine


@pytest.fixture
def topics(engine: SparkEngine) -> KafkaTopics:
    """The engine's own."""
    assert isinstance(engine._backend, ClassicBackend)
    assert isinstance(engine._backend.brokers, KafkaBrokers)
    return engine._backend.brokers._topics


@pytest.mark.parametrize("pattern", [".*payments.*", r".*\.public\..*_events"])
def test_an_ordinary_pattern_may_look_at_very_many_topics(
    spark: SparkSession, topics: KafkaTopics, pattern: str
) -> None:
    """What one name takes does not add up until a pattern that goes astray in none is refused."""
    names = java_list(
        spark, 20_000, "dbserver1.customer_relationship.public.order_line_item_history_and_more"
    )
    names.add("shop.public.payments_events")
    assert topics.matching(names, pattern) == ["shop.public.payments_events"]


def test_what_takes_too_long_for_all_topics_may_go_better_another_time(
    spark: SparkSession, topics: KafkaTopics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There may be fewer of them then; each by itself is no trouble."""
    monkeypatch.setattr(kafka_topics, "STEPS_IN_ALL", 100)
    names = java_list(spark, 50, "a" * 30)
    with pytest.raises(QueryError, match=r"a\+b takes too long for the names of 50 topics") as refused:
        topics.matching(names, "a+b")
    assert not refused.value.permanent


def java_list(spark: SparkSession, count: int, name: str) -> Any:
    """A list of Java's, of so many equal names."""
    jvm: Any = spark._jvm
    return jvm.java.util.ArrayList(jvm.java.util.Collections.nCopies(count, name))
