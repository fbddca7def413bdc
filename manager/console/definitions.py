"""Definitions as they are shown: references to secrets stay, what looks like a secret itself does not."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import msgspec

from definition.document import Definition
from definition.source import Source
from telemetry.secrets import HIDDEN, scrub, scrub_fields

_REFERENCE: Final = re.compile(r"\$\{(?:env|file):[^{}]*\}")


def shown(definition: msgspec.Raw) -> str:
    """The document as indented JSON, in the order in which people write one."""
    return _indented(_masked(msgspec.json.decode(definition)))


def written(definition: msgspec.Raw) -> str:
    """The document as indented JSON with nothing hidden, for whoever is to change it."""
    return _indented(msgspec.json.decode(definition))


def _indented(document: dict[str, Any]) -> str:
    ordered = _in_order(document, Definition)
    if ordered.get("source") is not None:
        ordered["source"] = _in_order(ordered["source"], Source)
    if "sources" in ordered:
        ordered["sources"] = {view: _in_order(each, Source) for view, each in ordered["sources"].items()}
    return json.dumps(ordered, indent=2, ensure_ascii=False)


def _in_order(document: dict[str, Any], kind: type[msgspec.Struct]) -> dict[str, Any]:
    """As the documentation has it: what is read, what is done with it, where it goes."""
    return {name: document[name] for name in kind.__struct_fields__ if name in document}


def _masked(value: Any, name: str = "") -> Any:
    match value:
        case dict():
            return {key: _masked(each, key) for key, each in value.items()}
        case list():
            return [_masked(each, name) for each in value]
        case str():
            return _masked_text(value, name)
        case _:
            return value


def _masked_text(text: str, name: str) -> str:
    """A text whose only secrets are references is harmless: they are names, and not what is behind them."""
    rest = _REFERENCE.sub("", text)
    if rest != text and (not rest or _scrubbed(rest, name) == rest):
        return text
    return _scrubbed(text, name)


def _scrubbed(text: str, name: str) -> str:
    return HIDDEN if scrub_fields({name: text})[name] == HIDDEN else scrub(text)
