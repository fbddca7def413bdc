"""YAML as files of tasks and settings use it: its safe subset, each key once, and aliases within bounds."""

from __future__ import annotations

from typing import Any, Final

import yaml

MOST_BY_ALIASES: Final = 32 * 1024 * 1024
"""Bytes, about, that aliases may add to what the file has: nine lines of them may be a billion values."""
VALUE: Final = 16
"""Bytes that a value takes, about, beside its characters."""


class Loader(yaml.SafeLoader):
    """YAML's safe subset; a key that is there twice is refused instead of the last one winning."""

    def construct_document(self, node: yaml.Node) -> Any:
        """The value of `node`; refused before its aliases are written out, if that would be too large."""
        written = node.end_mark.index - node.start_mark.index
        if _size(node, {}) > VALUE * written + MOST_BY_ALIASES:
            raise yaml.MarkedYAMLError(problem="its aliases, written out, are too large")
        return super().construct_document(node)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - PyYAML's signature
        """The mapping of `node`."""
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                raise yaml.MarkedYAMLError(problem=f"key {key.value!r} twice", problem_mark=key.start_mark)
            seen.add(key.value if isinstance(key, yaml.ScalarNode) else None)
        return super().construct_mapping(node, deep)


def _size(node: yaml.Node, sizes: dict[int, int]) -> int:
    """Bytes of `node`, about, with each alias written out; `sizes` has those that were counted."""
    if id(node) not in sizes:
        sizes[id(node)] = 0  # while it is counted: one that contains itself is refused later
        sizes[id(node)] = VALUE + _content(node, sizes)
    return sizes[id(node)]


def _content(node: yaml.Node, sizes: dict[int, int]) -> int:
    if isinstance(node, yaml.MappingNode):
        return sum(_size(key, sizes) + _size(value, sizes) for key, value in node.value)
    if isinstance(node, yaml.SequenceNode):
        return sum(_size(value, sizes) for value in node.value)
    return len(node.value)
