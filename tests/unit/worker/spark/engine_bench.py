"""What the tests of the engine are made of: a task, and starts that hang."""

from __future__ import annotations

import threading
from typing import Any

from definition.document import Definition
from worker.query_engine import QuerySpec
from worker.spark.settings import SparkSettings

SETTINGS = SparkSettings(app_name="tests", checkpoint_root="/nowhere", allow_entrypoint=("tested",))


def spec(task: str = "t", token: int = 1) -> QuerySpec:
    return QuerySpec("g", task, token, Definition(entrypoint="tested:run"))


class Hanging:
    """Holds the starts of some tasks until the test lets them go."""

    def __init__(self, *tasks: str) -> None:
        self.tasks = set(tasks)
        self.entered: list[str] = []
        self.go_on = threading.Event()

    def __call__(self, context: Any) -> None:
        self.entered.append(context.task)
        if context.task in self.tasks:
            assert self.go_on.wait(120)
