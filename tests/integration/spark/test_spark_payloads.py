"""Kafka's values as columns, by Spark alone: what is a row, and what is none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from definition.source import Payload, Source
from tests.integration.spark.kafka_values import kafka, read, refused
from worker.spark.reading.payload import take_apart

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

UNQUOTED: dict[str, Any] = {"allowUnquotedFieldNames": True}
COMMENTS: dict[str, Any] = {"ALLOWCOMMENTS": True}


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ('{"id":1,"name":"a","deep":{"x":2}}', (1, "a", (2,))),
        (' {"id":1, "other": [{"id": 2}, {}]} \r\n\t', (1, None, None)),
        ('{"id":1,"name":"}{ \\" } é"}', (1, '}{ " } é', None)),
        ('{"id":null}', (None, None, None)),
        ('{"id":null,"other":5}\n', (None, None, None)),
        ('{"id":null,"other":NaN}', (None, None, None)),
        ('{"id":null,"other":-Infinity}', (None, None, None)),
        ('{"other":NaN}', (None, None, None)),  # its names cannot be read, so they may be the wanted ones
        ("{}", (None, None, None)),
        (" { \n} \n", (None, None, None)),
        ("{'id':1}", (1, None, None)),
        (None, (None, None, None)),
    ],
)
def test_a_value_that_is_one_object_is_a_row(
    spark: SparkSession, text: str | None, row: tuple[Any, ...]
) -> None:
    """With white space around it, with other fields, with braces in its texts."""
    assert read(spark, text) == row
    assert read(spark, text, on_error=None) == row


@pytest.mark.parametrize(
    "text",
    [
        *('{"id":1}{"id":2}', '{"id":1} {"id":2}', '{"id":1},{"id":2}', '{"id":1}\n{"id":2}\n'),
        *('{"id":1} and more', '{"id":1}}', '{"id":1} }', '{"id":1}]', '{"id":1}\x00', '{}{"id":1}'),
        *('{"id":12', '{"id":12 \n', '{"id":1,', '{"id":1,}', '{"name":"a', '{"name":"a}', '{"name":"a\\}'),
        *("", "  ", "}", "{", "5", '"id"', "null", "[]", '[{"id":1}]', '[{"id":1},{"id":2}]', "{,}"),
        *('{"other":1}', '{"other":{"id":1}}', "{'other':1}", b'{"name":"\xff"}'),
        *(
            '{"id":1,"name":"}',
            '{"deep":{"x":1}',
            '{"deep":{}}}',
            '{"id":1} x}',
            '{"id":1\x00}',
            '"" {"id":1}',
        ),
        *(b'{"id":1,"other":"\xff"}', b'{"id":1}\xff}', '{{"id":1}}', '{"id"}', '{"id":1 x}'),
        *("{\x0b}", "\x0c{}", "{}\u2028", "{}\x85"),  # white space of Java's, and not of JSON's
    ],
)
def test_anything_else_fails_with_its_place(spark: SparkSession, text: str | bytes) -> None:
    """More than one value, a part of one, another one, none of the fields."""
    with pytest.raises(
        Exception, match=r"source\.value: topic t, partition 1, offset 7: cannot be taken apart"
    ):
        read(spark, text)


@pytest.mark.parametrize("text", ['{"id":"x"}', '{"id":1,"deep":{"x":"y"}}', '{"id":1,"deep":5}'])
def test_another_type_fails_too(spark: SparkSession, text: str) -> None:
    """Also deep in it."""
    with pytest.raises(Exception, match="offset 7: cannot be taken apart as json"):
        read(spark, text)


@pytest.mark.parametrize(
    ("text", "row"),
    [
        *(('{"id":1}{"id":2}', (1, None, None)), ('{"id":1} x', (1, None, None))),
        *(('[{"id":1}]', (None, None, None)), ('{"id":"x","name":"a"}', (None, "a", None))),
        *(('{"id":12', (None, None, None)), ("", (None, None, None)), ("[]", (None, None, None))),
        ('{"other":1}', (None, None, None)),
    ],
)
@pytest.mark.parametrize("options", [{}, {"MODE": "FAILFAST"}])
def test_with_null_a_value_is_what_spark_makes_of_it(
    spark: SparkSession, text: str, row: tuple[Any, ...], options: dict[str, Any]
) -> None:
    """It begins with one, and the rest is not looked at; a column of another type is null by itself."""
    assert read(spark, text, on_error="null", options=options) == row


@pytest.mark.parametrize(
    ("column", "options"),
    [
        ("_corrupt_record", {}),
        ("bad", {"columnNameOfCorruptRecord": "bad"}),
        ("bad", {"COLUMNNAMEOFCORRUPTRECORD": "bad"}),
    ],
)
def test_sparks_column_of_corrupt_records_has_the_value_as_it_was(
    spark: SparkSession, column: str, options: dict[str, Any]
) -> None:
    """With null only: a value that fails its batch is in no row. Nothing of ours is in it."""
    schema = {"schema": f"id BIGINT, {column} STRING", "options": options}
    for text in ('{"id":"x"}', "garbage"):
        assert read(spark, text, on_error="null", **schema) == (None, text)
        with pytest.raises(Exception, match="offset 7: cannot be taken apart"):
            read(spark, text, **schema)
    for text in ('{"id":1}', f'{{"id":1,"{column}":"forged"}}'):
        assert read(spark, text, **schema) == (1, None)
    assert read(spark, "{}", **schema) == (None, None)


@pytest.mark.parametrize(
    ("schema", "options", "row"),
    [
        ("id INT, name STRING, _corrupt_record STRING", {}, (1, "a", None)),
        ("bad STRING, id INT, name STRING", {"columnNameOfCorruptRecord": "bad"}, (None, 1, "a")),
        ("id INT, name STRING, _corrupt_record STRING", {"maxCharsPerColumn": 2}, (1, "a", None)),
    ],
)
def test_it_is_no_column_of_csv(
    spark: SparkSession, schema: str, options: dict[str, Any], row: tuple[Any, ...]
) -> None:
    """Wherever it stands; and null in what comes through."""
    payload: dict[str, Any] = {"format": "csv", "schema": schema, "options": options}
    assert read(spark, "1,a", **payload) == row
    for text in ("x,a", "1,a,b"):
        with pytest.raises(Exception, match="offset 7: cannot be taken apart"):
            read(spark, text, **payload)


def test_it_has_its_place_in_a_key(spark: SparkSession) -> None:
    """Whose fields stay together."""
    key = Payload(format="json", schema="_corrupt_record STRING, id INT")
    for value, row in ((b'{"id":1}', {"_corrupt_record": None, "id": 1}), (None, None)):
        frame = take_apart(kafka(spark, "key", value), Source(format="kafka", key=key), "source")
        [(taken,)] = frame.select("key").collect()
        assert (taken and taken.asDict()) == row


CSV = {"format": "csv", "schema": "id BIGINT, name STRING"}


@pytest.mark.parametrize(
    ("text", "options", "row"),
    [
        *(("1,a", {}, (1, "a")), ("1,", {}, (1, None)), ('1,"a" ', {}, (1, "a"))),
        *(('1,"a\nb"', {}, (1, "a\nb")), ("1,a\n", {}, (1, "a\n")), ("1,a\\", {}, (1, "a\\"))),
        *(("1\ta", {"sep": "\\t"}, (1, "a")), ("1||a", {"DELIMITER": "||"}, (1, "a"))),
        *(("1,a", {"comment": "#", "maxColumns": 2}, (1, "a")), ('1,"a', {"quote": ""}, (1, '"a'))),
        ('1,"a"x', {}, (1, '"a"x')),  # Spark's parser takes the quotes for characters then
    ],
)
def test_a_value_that_is_one_row_of_csv(
    spark: SparkSession, text: str, options: dict[str, Any], row: tuple[Any, ...]
) -> None:
    """With Spark's options; with fail it is the same as with null."""
    for on_error in ("fail", "null"):
        assert read(spark, text, **CSV, options=options, on_error=on_error) == row


MANY = ",".join(f"c{at} INT" for at in range(300))
LONG = {"maxCharsPerColumn": 20}


@pytest.mark.parametrize(
    ("text", "options"),
    [("," * 21_000, {}), ("1,a,b,c,d", {"MAXCOLUMNS": 3}), ("1," + "x" * 21, LONG), ("," * 1_100_000, {})],
    ids=lambda each: str(each)[:20],
)
def test_a_value_beyond_the_limits_of_spark_s_parser_is_no_row(
    spark: SparkSession, text: str, options: dict[str, Any]
) -> None:
    """Spark itself fails at it, with null, too, and says not where."""
    read(spark, text, **CSV, options=options, on_error="null")
    with pytest.raises(Exception, match="offset 7: cannot be taken apart as csv"):
        read(spark, text, **CSV, options=options)


@pytest.mark.parametrize("on_error", ["fail", "null"])
def test_what_is_within_them_is_a_row(spark: SparkSession, on_error: str) -> None:
    """Separators between quotes are none; a schema may have as many columns as there may be."""
    quoted = "," * 21_000
    assert read(spark, f'1,"{quoted}"', **CSV, on_error=on_error) == (1, quoted)
    assert read(spark, "1," + "x" * 20, **CSV, options=LONG, on_error=on_error) == (1, "x" * 20)
    assert read(spark, "," * 299, format="csv", schema=MANY, options={"maxColumns": 300}, on_error=on_error)


@pytest.mark.parametrize("schema", ["name STRING", "id INT"])
def test_an_empty_value_is_one_empty_column(spark: SparkSession, schema: str) -> None:
    """Of one column, and of no more than one."""
    assert read(spark, "", format="csv", schema=schema) == (None,)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        *(("", {}), ("\n", {}), ("1", {}), ("1,a,b", {}), ("x,a", {}), ("1,a\n2,b", {}), ("\n1,a", {})),
        *(("#1,a", {"comment": "#"}), ('1,"a', {}), ('"1,a', {}), ('1,"a\\', {}), (b"1,\xff", {})),
    ],
)
def test_anything_else_is_no_row_of_csv(
    spark: SparkSession, text: str | bytes, options: dict[str, Any]
) -> None:
    """Nothing, a comment, another number of columns, a quote that does not end, more than one row."""
    with pytest.raises(Exception, match="offset 7: cannot be taken apart as csv"):
        read(spark, text, **CSV, options=options)


@pytest.mark.parametrize(
    ("form", "options", "said"),
    [
        *(("json", {"allowComments": "maybe"}, '"maybe"'), ("json", {"timeZone": "No/x"}, "No/x")),
        *(("json", {"encoding": "nope"}, "nope"), ("json", {"maxNestingDepth": "x"}, '"x"')),
        *(("csv", {"quote": "ab"}, "quote"), ("csv", {"sep": ""}, "Delimiter"), ("csv", {"sep": "\\q"}, "q")),
        *(("csv", {"maxColumns": "x"}, "maxColumns"), ("csv", {"timeZone": "No/x"}, "No/x")),
    ],
)
@pytest.mark.parametrize("on_error", ["fail", "null"])
def test_an_option_that_spark_refuses_is_told_with_its_place(
    spark: SparkSession, form: str, options: dict[str, Any], said: str, on_error: str
) -> None:
    """Before any row is read, which Spark alone would wait for."""
    place, line = refused(spark, format=form, schema="id BIGINT", options=options, on_error=on_error)
    assert place == "source.value.options"
    assert said in line


@pytest.mark.parametrize("form", ["json", "csv"])
@pytest.mark.parametrize("name", ["mode", "MODE", "Mode"])
def test_the_mode_is_not_an_options_to_choose(spark: SparkSession, form: str, name: str) -> None:
    """What becomes of a row `on_error` says, in whichever letters `mode` is written."""
    payload: dict[str, Any] = {"format": form, "schema": "id BIGINT", "options": {name: "FAILFAST"}}
    text = '{"id":"x"}' if form == "json" else "x"
    assert read(spark, text, on_error="null", **payload) == (None,)
    with pytest.raises(Exception, match=f"offset 7: cannot be taken apart as {form}"):
        read(spark, text, **payload)


@pytest.mark.parametrize(
    "text", ['{"id":1,"_sparkherd_end":true} {"id":2}', '{"id":1,"_sparkherd_end":true} }']
)
def test_no_producer_knows_how_the_end_is_marked(spark: SparkSession, text: str) -> None:
    """A field by the name that stands in the code is one of the producer's own."""
    assert read(spark, '{"id":1,"_sparkherd_end":"no"}') == (1, None, None)
    with pytest.raises(Exception, match="offset 7: cannot be taken apart"):
        read(spark, text)


def test_names_like_ours_are_free(spark: SparkSession) -> None:
    """Whatever a field is called."""
    row = read(
        spark, '{"id":1,"_sparkherd_end":5}', schema="id BIGINT, _sparkherd_end INT, _sparkherd_row INT"
    )
    assert row == (1, 5, None)


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("struct<>", "has no columns, as in id BIGINT"),
        ("id BIGINT, ID BIGINT", "Ambiguous reference to the field `id`"),
        ("id BIGINT, name VARCHAR(2)", "The char/varchar type can't be used"),
        ("id BIGNIT", "BIGNIT"),
    ],
)
@pytest.mark.parametrize("on_error", ["fail", "null"])
def test_a_schema_that_spark_refuses_is_told_with_its_place(
    spark: SparkSession, schema: str, said: str, on_error: str
) -> None:
    """In the definition, before any row."""
    place, line = refused(spark, schema=schema, on_error=on_error)
    assert place == "source.value.schema"
    assert said in line


@pytest.mark.parametrize(
    ("text", "row"), [("{id:1}", (1, None, None)), ("{id:null, other:1}", (None, None, None))]
)
def test_options_that_allow_more_than_json(spark: SparkSession, text: str, row: tuple[Any, ...]) -> None:
    """They count for whether a row has any of the fields, too."""
    assert read(spark, text, options=UNQUOTED) == row


@pytest.mark.parametrize("text", ["{other:1}", "{other:{id:1}}", "{id:1}{id:2}", "{id:1} x"])
def test_with_options_the_same_rows_fail(spark: SparkSession, text: str) -> None:
    """What has none of the fields, and what is more or less than one object."""
    with pytest.raises(Exception, match="offset 7: cannot be taken apart as json"):
        read(spark, text, options=UNQUOTED)


def test_nesting_may_be_as_deep_as_its_option_says(spark: SparkSession) -> None:
    """Also where all that is wanted is null, and the names of the fields cannot be read."""
    text = '{"id":null,"other":' + "[" * 2000 + "]" * 2000 + "}"
    assert read(spark, text, options={"maxNestingDepth": 5000}) == (None, None, None)


@pytest.mark.parametrize(
    ("text", "row"),
    [
        *(('{"id":1} // done', (1, None, None)), ('{"id":1} /* } */', (1, None, None))),
        *(('/* an */ {"id":1} // }', (1, None, None)), ('{ /* : */ "id": 1 // one\n}', (1, None, None))),
        *(("{ /* none */ }", (None, None, None)), ('{"id":1} {"id":2}', (1, None, None))),
    ],
)
def test_comments_may_be_around_a_row(spark: SparkSession, text: str, row: tuple[Any, ...]) -> None:
    """So what is behind it is not looked at."""
    assert read(spark, text, options=COMMENTS) == row


@pytest.mark.parametrize(
    "text", ['{"id":1', '{"id":1 /* }', ' [{"id":1}]', '{"id":"x"}', '{"other":1} // x', ""]
)
def test_with_comments_what_is_no_row_fails(spark: SparkSession, text: str) -> None:
    """Nor is an array a row."""
    with pytest.raises(Exception, match="offset 7: cannot be taken apart as json"):
        read(spark, text, options=COMMENTS)


def test_keys_of_topics_are_read_the_same_way(spark: SparkSession) -> None:
    """As a column that has the fields, and no others."""
    frame = kafka(spark, "key", b'{"id":1}')
    for on_error in ("fail", "null"):
        key = Payload(format="json", schema="id BIGINT", on_error=on_error)
        [row] = take_apart(frame, Source(format="kafka", key=key), "source").select("key").collect()
        assert row.key.asDict() == {"id": 1}
