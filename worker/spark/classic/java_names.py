"""The JVM's classes by their names, each looked up once.

Py4J asks the JVM for every part of a name, each time: `jvm.org.apache.hadoop.fs.Path` is five calls, and for
the four that are no class the JVM goes through all of its jars. Starting 80 queries took it 3.8 s of
processor time to find nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from py4j.java_gateway import JavaPackage, JVMView

if TYPE_CHECKING:
    from py4j.java_gateway import GatewayClient


class RememberedNames(JVMView):  # type: ignore[misc]  # theirs has no types
    """A view of a JVM that asks for no name twice; for any thread."""

    def __init__(self, view: JVMView) -> None:
        """`view` is Py4J's own."""
        super().__init__(view._gateway_client, view._jvm_name, id=view._id)  # noqa: SLF001 - Py4J's one way
        self._view = view

    def __getattr__(self, name: str) -> Any:
        return _remembered(self, name, super().__getattr__(name))


class _Package(JavaPackage):  # type: ignore[misc]  # as above
    def __init__(self, fqn: str, client: GatewayClient, jvm_id: str) -> None:
        super().__init__(fqn, client, jvm_id)

    def __getattr__(self, name: str) -> Any:
        return _remembered(self, name, super().__getattr__(name))


def _remembered(owner: object, name: str, found: Any) -> Any:
    """Py4J takes for a package what is no class: one in capitals may be a class whose jar is yet to come."""
    if isinstance(found, JavaPackage):
        if not name.rpartition(".")[2].islower():
            return found
        found = _Package(found._fqn, found._gateway_client, found._jvm_id)  # noqa: SLF001 - as above
    setattr(owner, name, found)
    return found
