"""Metrics declared as data, and made into Prometheus's instruments on a registry of one's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.samples import Sample

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from prometheus_client import Metric as PrometheusMetric
    from prometheus_client.registry import Collector

# A series more for each counter that says when it began; a restart is seen in the counter itself.
prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]  # theirs

Family = CounterMetricFamily | GaugeMetricFamily


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric as it is scraped; `buckets` are the upper bounds of a histogram's."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


class Instruments:
    """The metrics of one daemon: some are counted as things happen, the others read when somebody asks."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)

    def counter(self, metric: Metric) -> Counter:
        """Counts."""
        return Counter(metric.name, metric.help, metric.labels, registry=self.registry)

    def gauge(self, metric: Metric) -> Gauge:
        """Goes up and down."""
        return Gauge(metric.name, metric.help, metric.labels, registry=self.registry)

    def histogram(self, metric: Metric) -> Histogram:
        """Counts by size."""
        return Histogram(
            metric.name, metric.help, metric.labels, buckets=metric.buckets, registry=self.registry
        )

    def read_at_scrape(self, collector: Collector) -> None:
        """Have `collector` asked at every scrape."""
        self.registry.register(collector)

    def exposition(self, accept: str, *present: Collector) -> tuple[bytes, str]:
        """All metrics in the form that the header `accept` asks for, and the name of that form.

        For any thread, if `present`, which are read beside what is registered, are.
        """
        encode, content_type = choose_encoder(accept)
        return encode(_Together((self.registry, *present))), content_type


@dataclass(frozen=True, slots=True)
class _Together:
    """Collectors as one, which is all that an encoder asks of a registry."""

    parts: tuple[Collector, ...]

    def collect(self) -> Iterator[PrometheusMetric]:
        for part in self.parts:
            yield from part.collect()


def family(metric: Metric) -> Family:
    """What a collector yields of `metric`."""
    kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    return kind(metric.name, metric.help, labels=metric.labels)


def gauges_as_read(metric: Metric, values: Iterable[tuple[tuple[str, ...], float]]) -> Family:
    """A gauge whose values, each with its labels, are read once, while they are written.

    Hundreds of thousands of them at once would have Python's collector of garbage look through them all, for
    which every thread waits.
    """
    found = family(metric)
    found.samples = (  # type: ignore[assignment]  # whoever writes them goes through them, and no more
        Sample(metric.name, dict(zip(metric.labels, labels, strict=True)), value) for labels, value in values
    )
    return found
