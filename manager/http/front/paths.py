"""Which path leads where: a tree of segments, so that the last path is found as fast as the first."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")

MAY_BE_EMPTY = "group"
"""The one name that may be: that makes an illegal group id of it, and not a path that does not exist."""


class _Node(Generic[T]):
    """The end of a part of a path: what is there for each method, and what may follow."""

    def __init__(self) -> None:
        self.methods: dict[str, T] = {}
        self.fixed: dict[str, _Node[T]] = {}
        self.named: _Node[T] | None = None
        self.name = ""


class Paths(Generic[T]):
    """Paths such as `/v1/groups/{group}`, and what is there for each method."""

    def __init__(self) -> None:
        self._root: _Node[T] = _Node()

    def add(self, method: str, path: str, what: T) -> None:
        """Put `what` at a path; what answers GET answers HEAD.

        Raises:
            ValueError: something is there already, or another name or a text where this path has a name.
        """
        node = self._root
        for segment in _segments(path):
            node = _child(node, segment, path)
        for each in ("GET", "HEAD") if method == "GET" else (method,):
            if each in node.methods:
                raise ValueError(f"{path}: something answers {each} already")
            node.methods[each] = what

    def find(self, path: str) -> tuple[dict[str, T], dict[str, str]]:
        """What is at `path` for each method, nothing if there is no such path, and the names in it.

        `path` is decoded but for `%2F` and `%25`, as `yarl.URL.path_safe` is.
        """
        node = self._root
        names: dict[str, str] = {}
        for segment in _segments(path):
            following = node.fixed.get(segment)
            if following is None:
                following = node.named
                if following is None or (not segment and node.name != MAY_BE_EMPTY):
                    return {}, names
                names[node.name] = _decoded(segment)
            node = following
        return node.methods, names


def _child(node: _Node[T], segment: str, path: str) -> _Node[T]:
    if not segment.startswith("{"):
        if node.named is not None:
            raise ValueError(f"{path}: {segment} stands where another path has the name {node.name}")
        return node.fixed.setdefault(segment, _Node())
    if node.fixed or node.name not in {"", segment[1:-1]}:
        raise ValueError(f"{path}: {segment} stands where another path has something else")
    node.name = segment[1:-1]
    node.named = node.named or _Node()
    return node.named


def _segments(path: str) -> list[str]:
    return path.split("/")[1:]


def _decoded(segment: str) -> str:
    return segment.replace("%2F", "/").replace("%25", "%") if "%" in segment else segment
