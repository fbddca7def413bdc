"""What the dashboard and the alert rules ask Prometheus for."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCS = Path(__file__).parents[3] / "docs"
PAGE = DOCS / "monitoring.md"
DASHBOARD = DOCS / "monitoring" / "dashboard.json"
ALERTS = DOCS / "monitoring" / "alerts.yml"

_NAME = re.compile(r"\b(?:sparkherd|process)_[a-z_]+")
_MATCHERS = re.compile(r"(sparkherd_[a-z_]+)\{([^}]*)\}")
_MATCHER = re.compile(r"(\w+)\s*(=~|!=|!~|=)\s*\"([^\"]*)\"")


def panels() -> list[dict[str, Any]]:
    """Of the dashboard; those that show something."""
    document = json.loads(DASHBOARD.read_text())
    return [panel for panel in document["panels"] if panel["type"] != "row"]


def rules() -> list[dict[str, Any]]:
    """Every alert."""
    document = yaml.safe_load(ALERTS.read_text())
    return [rule for group in document["groups"] for rule in group["rules"]]


def expressions() -> Iterator[str]:
    """Everything that is asked, the dashboard's variables included."""
    yield from (rule["expr"] for rule in rules())
    yield from (target["expr"] for panel in panels() for target in panel["targets"])
    for variable in json.loads(DASHBOARD.read_text())["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["definition"]


def samples_asked_for() -> set[str]:
    """The names of samples in all of them."""
    return {name for expression in expressions() for name in _NAME.findall(expression)}


def matchers() -> Iterator[tuple[str, str, str, str]]:
    """Sample, label, operator and value of each condition on a label."""
    for expression in expressions():
        for name, inside in _MATCHERS.findall(expression):
            for label, operator, value in _MATCHER.findall(inside):
                yield name, label, operator, value
