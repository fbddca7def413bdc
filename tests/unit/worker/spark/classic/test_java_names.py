"""Names of Java's classes are looked up once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from py4j.java_gateway import JVMView
from py4j.protocol import SUCCESS_CLASS, SUCCESS_PACKAGE

from worker.spark.classic.java_names import RememberedNames


class Client:
    """A JVM that has one class; it remembers what it was asked for."""

    gateway_property = SimpleNamespace(pool=None)
    converters = None

    def __init__(self, known: str) -> None:
        self.known = known
        self.asked: list[str] = []

    def send_command(self, command: str) -> str:
        name = command.split("\n")[2]
        self.asked.append(name)
        return f"{SUCCESS_CLASS}{name}" if name == self.known else SUCCESS_PACKAGE


def view(known: str) -> tuple[Client, Any]:
    client = Client(known)
    return client, RememberedNames(JVMView(client, "default", id="rj"))


def test_a_class_is_asked_for_once() -> None:
    """Neither it nor the packages on the way are asked for again."""
    client, jvm = view("org.hadoop.Path")
    found = jvm.org.hadoop.Path
    assert found._fqn == "org.hadoop.Path"
    assert jvm.org.hadoop.Path is found
    assert client.asked == ["org", "org.hadoop", "org.hadoop.Path"]


def test_a_whole_name_is_asked_for_once() -> None:
    """PySpark asks for whole names."""
    client, jvm = view("org.hadoop.Path$")
    assert getattr(jvm, "org.hadoop.Path$") is getattr(jvm, "org.hadoop.Path$")
    assert client.asked == ["org.hadoop.Path$"]


def test_a_class_that_is_missing_is_asked_for_again() -> None:
    """Its jar may come later."""
    client, jvm = view("nothing")
    assert jvm.org.Late._fqn == "org.Late"
    client.known = "org.Late"
    assert type(jvm.org.Late).__name__ == "JavaClass"
    assert client.asked == ["org", "org.Late", "org.Late"]
