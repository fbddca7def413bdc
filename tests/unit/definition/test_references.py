"""References to secrets in definitions: what is well-formed, and what they are replaced by."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from definition.document import DefinitionError, parse_definition
from definition.references import Reference, find_problems, resolve, specimen

SQL_SINK = {"format": "sql", "options": {"url": "postgresql://u:${env:PW}@db/herd", "table": "t"}}
DECLARED: dict[str, Any] = {"source": {"format": "rate", "options": {}}, "sink": SQL_SINK}


def _problems(document: dict[str, Any]) -> list[tuple[str, str]]:
    try:
        parse_definition(json.dumps(document).encode())
    except DefinitionError as error:
        return [(each.path, each.message) for each in error.problems]
    return []


@pytest.mark.parametrize(
    "text",
    [
        "${env:PW}",
        "a${env:_P1}b${file:db/pw}",
        "${file:/run/secrets/pw}",
        "$${env",
        "$",
        "{}",
        "$5",
        "a$${b}",
    ],
)
def test_well_formed_references(text: str) -> None:
    """Names of variables, paths, several of them, and what is escaped or no reference at all."""
    assert not list(find_problems(text, "x", for_spark=False))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("${env:PW", "begins no reference"),
        ("${evn:PW}", "begins no reference"),
        ("${PW}", "begins no reference"),
        ("${env.PW}", "begins no reference"),
        ("${env:${env:A}}", "begins no reference"),
        ("${env:}", "names no variable"),
        ("${env:1A}", "names no variable"),
        ("${env:A B}", "names no variable"),
        ("${file:}", "names no file"),
        ("${file:a\0}", "names no file"),
        ("${file:../passwd}", "must not lead out"),
        ("${file:a/../../b}", "must not lead out"),
    ],
)
def test_malformed_references(text: str, fault: str) -> None:
    """Each is refused, and the message does not quote the value."""
    [problem] = find_problems({"deep": [text]}, "options")
    assert problem.path == "options.deep[0]"
    assert fault in problem.message
    assert text not in problem.message


@pytest.mark.parametrize(
    "text",
    [
        "$${env:HOME}",  # Spark's
        "$${env.HOME}",  # Hadoop's
        "$${system:user.home}",
        "$${providers:HOME}",  # Kafka's client may be told to ask a provider of any name
        "$${x}{env.HOME}",  # Hadoop looks again: another option, x, may be a $
        "$${$${x}}",
        "${env:A}$${x}",
    ],
)
def test_what_spark_would_fill_from_its_own_environment(text: str) -> None:
    """An escape must not be a way to the worker's variables; what Spark never sees may be written."""
    (problem,) = find_problems(text, "x")
    assert problem.message.startswith("has a $${, by which Spark and Hadoop would read the worker's own")
    assert not list(find_problems(text, "x", for_spark=False))


def test_who_sees_which_options() -> None:
    """Those of the fenced sinks and of entry points are the worker's alone."""
    kafka = {"format": "kafka", "options": {"topic": "$${t}"}}
    assert [path for path, _ in _problems({**DECLARED, "sink": kafka})] == ["sink.options.topic"]
    password = {**SQL_SINK, "options": {"url": "postgresql://u:$${x@db/herd", "table": "t"}}
    assert _problems({**DECLARED, "sink": password}) == []
    files = {"format": "fenced_files", "options": {"path": "/data/$${x}"}}
    assert _problems({**DECLARED, "sink": files}) == []
    assert _problems({"entrypoint": "a:b", "options": {"a": "$${x}"}}) == []
    assert [path for path, _ in _problems({**DECLARED, "spark_conf": {"a": "$${x}"}})] == ["spark_conf.a"]


@pytest.mark.parametrize(
    ("place", "document"),
    [
        ("source.options.a", {**DECLARED, "source": {"format": "rate", "options": {"a": "${x}"}}}),
        (
            "sink.options.url",
            {**DECLARED, "sink": {**SQL_SINK, "options": {"url": "sqlite:///${a", "table": "t"}}},
        ),
        ("spark_conf.a", {**DECLARED, "spark_conf": {"a": "${env:}"}}),
        ("options.a[0].b", {"entrypoint": "a:b", "options": {"a": [{"b": "${x}"}]}}),
    ],
)
def test_definitions_are_refused_with_the_place(place: str, document: dict[str, Any]) -> None:
    """Everywhere a reference may stand, a malformed one is found."""
    assert [path for path, _ in _problems(document)] == [place]


def test_definitions_with_references_are_accepted() -> None:
    """A URL is checked as far as it can be seen."""
    assert _problems(DECLARED) == []
    whole = {**SQL_SINK, "options": {"url": "${file:url}", "table": "t"}}
    assert _problems({**DECLARED, "sink": whole}) == []
    other = {**SQL_SINK, "options": {"url": "mysql://u:${env:PW}@db:${env:PORT}/x", "table": "t"}}
    assert [path for path, _ in _problems({**DECLARED, "sink": other})] == ["sink.options.url"]


def test_sparks_own_substitution_is_not_for_tasks() -> None:
    """With it, SQL could read the variables of the worker."""
    document = {**DECLARED, "spark_conf": {"spark.sql.variable.substitute": "true"}}
    assert [path for path, _ in _problems(document)] == ['spark_conf["spark.sql.variable.substitute"]']


def test_resolving_replaces_references_only() -> None:
    """Numbers, keys and escapes stay; each reference is looked up with its place."""
    asked = []

    def look_up(reference: Reference, path: str) -> str:
        asked.append((str(reference), path))
        return "${env:not-again}"

    value = {"${env:K}": 1, "a": ["x${env:A}y$${z}", True], "b": {"c": "${file:p/q}"}}
    assert resolve(value, "o", look_up) == {
        "${env:K}": 1,
        "a": ["x${env:not-again}y${z}", True],
        "b": {"c": "${env:not-again}"},
    }
    assert asked == [("${env:A}", "o.a[0]"), ("${file:p/q}", "o.b.c")]


@given(st.text(alphabet="${}:envfil A"))
def test_text_without_references_stays(text: str) -> None:
    """What is escaped comes out as it was; what is well-formed never raises."""
    escaped = text.replace("${", "$${")
    if "$$${" not in escaped:
        assert resolve(escaped, "", lambda *_: "!") == text
    if not list(find_problems(text, "", for_spark=False)):
        resolve(text, "", lambda *_: "!")


def test_a_specimen_has_no_references() -> None:
    """What is left can be checked; a text that begins with one cannot."""
    assert specimen("a${env:B}c") == "a0c"
    assert specimen("${env:B}c") is None
    assert specimen("a${B") == "a${B"


KAFKA = {"format": "kafka", "options": {"subscribe": "t"}}
JSON = {"format": "json", "schema": "id LONG"}


@pytest.mark.parametrize(
    ("place", "document"),
    [
        ("source.table", {**DECLARED, "source": {"table": "lake.${env:T}"}}),
        ("source.schema", {**DECLARED, "source": {"format": "csv", "schema": "${file:schema}"}}),
        ("source.commit_group", {**DECLARED, "source": {**KAFKA, "commit_group": "${env:G}"}}),
        ("source.value.schema", {**DECLARED, "source": {**KAFKA, "value": {**JSON, "schema": "${file:s}"}}}),
        (
            "sources.a.watermark.column",
            {
                "sources": {"a": {"format": "rate", "watermark": {"column": "${env:C}", "delay": "1 hour"}}},
                "sql": "SELECT 1",
                "sink": SQL_SINK,
            },
        ),
        ("sink.table", {**DECLARED, "sink": {"table": "${env:T}"}}),
        ("sink.partition_by[0]", {**DECLARED, "sink": {"format": "parquet", "partition_by": ["${env:D}"]}}),
        ("worker", {**DECLARED, "worker": "${env:HOST}"}),
        ("labels.zone", {**DECLARED, "labels": {"zone": "${env:ZONE}"}}),
        ('labels["${env:ZONE}"]', {**DECLARED, "labels": {"${env:ZONE}": "a"}}),
        ('spark_conf["${env:C}"]', {**DECLARED, "spark_conf": {"${env:C}": "a"}}),
        (
            'source.options["a${file:n}"]',
            {**DECLARED, "source": {"format": "x", "options": {"a${file:n}": 1}}},
        ),
        (
            'source.value.options["${env:O}"]',
            {**DECLARED, "source": {**KAFKA, "value": {**JSON, "options": {"${env:O}": "a"}}}},
        ),
        ('sink.options["${env:O}"]', {**DECLARED, "sink": {"format": "x", "options": {"${env:O}": "a"}}}),
        ('options.a[0]["${env:O}"]', {"entrypoint": "a:b", "options": {"a": [{"${env:O}": "${env:V}"}]}}),
    ],
)
def test_where_nobody_looks_references_up_they_are_refused(place: str, document: dict[str, Any]) -> None:
    """They would be the name of a table, or a worker that is not there."""
    assert _problems(document) == [
        (place, "takes no ${env:NAME} or ${file:PATH}; those are for the values of options and spark_conf")
    ]


def test_a_consumer_group_s_name_is_no_longer_than_others() -> None:
    """It stands in Kafka beside each offset, and a request with more than a mebibyte of them is refused."""
    for length, problems in ((249, []), (250, [("source.commit_group", "has more than 249 characters")])):
        document = {**DECLARED, "source": {**KAFKA, "commit_group": "g" * length}}
        assert _problems(document) == problems


def test_signs_that_only_look_like_references_stay() -> None:
    """In names, and in SQL."""
    assert _problems({**DECLARED, "labels": {"a": "${x}", "b": "$5", "${x}": "c"}}) == []
    assert _problems({**DECLARED, "sql": "SELECT '${env:HOME}' AS x FROM source"}) == []


@pytest.mark.parametrize("name", ["kafka.config.providers", "KAFKA.config.providers.env.class"])
@pytest.mark.parametrize("section", ["source", "sink"])
def test_providers_of_kafka_s_client_are_refused(section: str, name: str) -> None:
    """What they are asked for never comes to it, but a value of the worker's may ask them, too."""
    document = {**DECLARED, section: {"format": "kafka", "options": {name: "env"}}}
    [(place, message)] = _problems(document)
    assert place == f'{section}.options["{name}"]'
    assert message == "reads variables or files of the worker; write ${env:NAME} or ${file:PATH}"
