"""Whether two sinks write to one place, as far as their definitions say; rules without I/O.

One place may be written in many ways. What only a file system, a catalog or a database could tell (links,
relative folders, views, what a secret stands for) is not known here, nor what formats that are plugged in
call `path` or `table`.
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from definition.sinks.delta import DELTA_SINK
from definition.sinks.files import FILES_SINK
from definition.sinks.iceberg import ICEBERG_SINK

if TYPE_CHECKING:
    from definition.sink import Sink

_IN_FOLDERS: Final = frozenset({DELTA_SINK, FILES_SINK})
"""Whose `options.path` is a folder."""
_IN_CATALOGS: Final = frozenset({DELTA_SINK, ICEBERG_SINK})
"""Whose `table` is one of Spark's."""
_URL: Final = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?://(?P<host>[^/]*))?(?P<path>/.*|$)")
_SAME_SCHEME: Final = {"s3": "s3a", "s3n": "s3a"}
_PARTS: Final = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")
_USUAL: Final = ("spark_catalog", "default")
"""The catalog and the namespace of a table that is named without."""
_UP: Final = ".."


class Folder(NamedTuple):
    """A folder in one way of writing it: without `file:`, and other schemes in lower case.

    Args:
        root: what it is below; empty where the folder is relative to one that is not known here.
        parts: the names on the way. Those of a path with a reference in it are as they are written, for who
            knows what `..` leaves there; in others `..` is at the beginning only, and of no root.
        is_known: whether there is no reference in it.
    """

    root: str
    parts: tuple[str, ...]
    is_known: bool


def same_place(one: Sink, other: Sink) -> str | None:
    """What in the definition of `other` names the place of `one`, or one in it or around it; None if none."""
    folders = [folder for each in (one, other) if (folder := folder_of(each)) is not None]
    if len(folders) > 1:
        return "options.path" if _overlap(*folders) else None
    tables = [table for each in (one, other) if (table := table_of(each)) is not None]
    return "table" if len(tables) > 1 and len(set(tables)) == 1 else None


def folder_of(sink: Sink) -> Folder | None:
    """Where a sink's rows are, if it is in a folder that its definition names."""
    path = sink.options.get("path")
    if sink.format not in _IN_FOLDERS or not isinstance(path, str) or not path.strip():
        return None
    return _folder(path.strip())


def table_of(sink: Sink) -> tuple[str, ...] | None:
    """The parts of its name, if it is a table in one of Spark's catalogs."""
    return _spark_table(sink.table) if sink.format in _IN_CATALOGS and sink.table is not None else None


def _overlap(one: Folder, other: Folder) -> bool:
    """Whether they are one folder, or one is in the other: who tidies that up would take both."""
    return _is_around(one, other) or _is_around(other, one)


def _is_around(outer: Folder, inner: Folder) -> bool:
    """Whether the one is the other, or has it in itself."""
    if outer.root != inner.root:
        return False
    if outer.root or not set(outer.parts) <= {_UP}:
        rest = inner.parts[len(outer.parts) :]
        return inner.parts[: len(outer.parts)] == outer.parts and _UP not in rest
    return inner.is_known and inner.parts.count(_UP) <= len(outer.parts)


def _folder(path: str) -> Folder:
    url = _URL.match(path)
    is_known = "${" not in path
    if url is None:
        return Folder("/" * path.startswith("/"), _parts(path, is_known=is_known), is_known)
    scheme = url["scheme"].lower()
    root = "/" if scheme == "file" else f"{_SAME_SCHEME.get(scheme, scheme)}://{url['host'] or ''}/"
    return Folder(root, _parts(url["path"], is_known=is_known), is_known)


def _parts(path: str, *, is_known: bool) -> tuple[str, ...]:
    named = normal_path(path) if is_known else path
    return tuple(part for part in named.split("/") if part not in {"", "."})


def normal_path(path: str) -> str:
    """Without what changes nothing in it, as far as there are no links."""
    return posixpath.normpath(re.sub("/+", "/", path))


def _spark_table(name: str) -> tuple[str, ...]:
    """Its parts, whose case counts nowhere that two such tables would be told apart on purpose."""
    parts = [(quoted or plain).replace("``", "`").lower() for quoted, plain in _PARTS.findall(name)]
    return (*_USUAL[: max(len(_USUAL) + 1 - len(parts), 0)], *parts)
