"""The columns of a frame as sinks know them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.sinks.base import Field
from worker.sinks.sifting import MASK

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def fields(frame: DataFrame) -> list[Field]:
    """The frame's columns as sinks know them, without the mask of its rows."""
    columns = frame.schema.jsonValue()["fields"]
    return [Field(each["name"], each["type"]) for each in columns if each["name"] != MASK]
