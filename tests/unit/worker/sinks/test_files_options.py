from __future__ import annotations

import json
from typing import Any

import pytest

from definition.document import DefinitionError, parse_definition
from definition.sinks.files import FilesOptions


def document(options: dict[str, Any], **more: Any) -> bytes:
    sink = {"format": "fenced_files", "options": options}
    return json.dumps({"source": {"format": "rate"}, "sink": sink, **more}).encode()


@pytest.mark.parametrize("path", ["out", "/data/out", "file:/data/out", "file:///data/out", "a:b", "C"])
def test_a_folder_is_taken(path: str) -> None:
    """By any name that a file system knows; Parquet unless it says JSON."""
    definition = parse_definition(document({"path": path}))
    assert definition.sink is not None
    assert definition.sink.read_options() == FilesOptions(path=path, format="parquet")


@pytest.mark.parametrize(
    ("options", "where", "said"),
    [
        ({}, "sink.options.path", "is required"),
        ({"path": "s3a://bucket/out"}, "sink.options.path", "must be a folder that is mounted"),
        ({"path": "hdfs:/out"}, "sink.options.path", "must be a folder that is mounted"),
        ({"path": "/"}, "sink.options.path", "must name a folder"),
        ({"path": "a\0b"}, "sink.options.path", "must not contain NUL"),
        ({"path": "out", "format": "csv"}, "sink.options.format", "expected one of parquet, json"),
        ({"path": "out", "compression": "none"}, "sink.options.compression", "unknown key"),
    ],
)
def test_what_is_wrong_is_named(options: dict[str, Any], where: str, said: str) -> None:
    """Each fault has its place in the document."""
    with pytest.raises(DefinitionError) as refused:
        parse_definition(document(options))
    ((path, message),) = [(each.path, each.message) for each in refused.value.problems]
    assert path == where
    assert said in message


@pytest.mark.parametrize("mode", ["update", "complete"])
def test_files_are_only_appended(mode: str) -> None:
    """The other output modes change rows that are there."""
    with pytest.raises(DefinitionError, match="output_mode: must be append with the sink fenced_files"):
        parse_definition(document({"path": "out"}, output_mode=mode))
