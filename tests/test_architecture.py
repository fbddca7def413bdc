"""The directions of architecture §1: imports point down, and nobody pays for what they do not use."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import aiohttp
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
MAY_IMPORT = {
    "protocol": set[str](),
    "telemetry": set[str](),
    "configuration": {"protocol"},
    "definition": {"protocol", "telemetry"},
    "assignors": {"protocol", "telemetry"},
    "manager": {"protocol", "configuration", "definition", "telemetry", "assignors"},
    "worker": {"protocol", "configuration", "definition", "telemetry", "assignors"},
    "cli": {"protocol", "configuration", "definition", "telemetry", "assignors", "manager", "worker"},
    "sparkherd": {"protocol", "definition", "assignors", "worker", "cli"},
}
REST = "the rest"
ROOMS = {
    "manager.core": {
        REST: set[str](),
        "tasks": {REST},
        "membership": {REST, "tasks"},
        "views": {REST, "tasks", "membership"},
        "loading": {REST, "tasks", "membership"},
        "coordinator": {REST, "tasks", "membership", "views", "loading"},
    },
    "cli": {
        "exit_codes": set[str](),
        "client": set[str](),
        "views": {"client"},
        "task_files": {"client"},
        "options": {"client", "exit_codes", "task_files", "views"},
        "commands": {"client", "exit_codes", "options", "task_files", "views"},
        "demo": {"client", "exit_codes", "views"},
        "doctor": {"client", "exit_codes", "options", "views"},
    },
    "benchmarks": {"tools": set[str](), "peers": {"tools"}, "measures": {"peers", "tools"}},
    "manager": {
        "settings": set[str](),
        "tls": {"settings"},
        "core": {"settings"},
        "clock": {"core"},
        "access": set[str](),
        "storage": {"access", "core"},
        "metrics": {"core"},
        "background": {"access", "storage"},
        "outbox": {"background", "clock", "core", "metrics", "settings", "storage"},
        "runtime": {"background", "clock", "core", "metrics", "outbox", "settings", "storage"},
        "watch": {"background", "clock", "core", "outbox", "storage"},
        "cluster": {"background", "clock", "core", "runtime", "settings", "storage"},
        "http": {"access", "background", "cluster", "core", "outbox", "runtime", "storage"},
        "console": {"access", "background", "clock", "cluster", "core", "http", "runtime", "storage"},
        "app": {"access", "background", "cluster", "console", "http", "runtime"},
        "daemon": {
            *("access", "app", "background", "cluster", "http", "outbox", "runtime", "settings", "storage"),
            *("tls", "watch"),
        },
    },
    "worker": {
        "background": set[str](),
        "clock": set[str](),
        "costs": set[str](),
        "left_out": set[str](),
        "looks": set[str](),
        "malloc_arenas": set[str](),
        "masking": set[str](),
        "query_engine": {"costs", "left_out"},
        "resources": {"clock", "malloc_arenas", "query_engine"},
        "settings": set[str](),
        "lag": set[str](),
        "sinks": {"left_out", "masking"},
        "sink_contract": {"sinks"},
        "silence": set[str](),
        "threads": set[str](),
        "waiting": set[str](),
        "client": {"waiting"},
        "membership": {"clock", "threads", "waiting"},
        "errands": {"clock", "membership", "query_engine", "waiting"},
        "checks": {"errands", "lag", "query_engine"},
        "quarantined_rows": {"masking", "errands", "query_engine", "waiting"},
        "secrets": {"query_engine"},
        "session_lease": {"clock"},
        "watchdog": {"threads"},
        "spark": {
            *("checks", "costs", "lag", "left_out", "looks", "query_engine", "secrets", "silence", "sinks"),
            *("threads", "waiting"),
        },
        "isolation": {"clock", "malloc_arenas", "query_engine", "silence", "spark", "waiting"},
        "tasks": {
            *("clock", "left_out", "looks", "membership", "query_engine", "session_lease", "settings"),
            *("waiting", "watchdog"),
        },
        "metrics": {"costs", "left_out", "membership", "tasks"},
        "status": {"metrics", "threads"},
        "host": {
            *("background", "clock", "isolation", "membership", "metrics", "query_engine", "resources"),
            *("settings", "spark", "status", "tasks"),
        },
        "daemon": {
            *("background", "checks", "client", "clock", "errands", "host", "membership", "metrics"),
            *("quarantined_rows", "query_engine", "session_lease", "settings", "tasks", "watchdog"),
        },
        "standalone": {
            *("background", "clock", "host", "membership", "metrics", "query_engine"),
            *("secrets", "settings", "sinks", "spark", "tasks", "threads", "waiting"),
        },
    },
    "worker.tasks": {
        "grants": set[str](),
        "restarts": set[str](),
        "settling": set[str](),
        "preparations": {"grants"},
        "desired_state": {"grants"},
        "task_status": set[str](),
        "batch_time": set[str](),
        "limits": {"batch_time"},
        "query_run": {"limits", "settling", "task_status", "desired_state"},
        "life": {"grants", "query_run", "restarts", "settling", "task_status", "desired_state"},
        "ownership": {"grants", "life", "desired_state"},
        "holdings": {"life", "ownership"},
        "token_leases": {"life"},
        "first_starts": set[str](),
        "exchange": {"grants", "life"},
        "orphans": {"exchange"},
        "runner": {
            *(
                "exchange",
                "first_starts",
                "grants",
                "holdings",
                "life",
                "orphans",
                "preparations",
                "ownership",
                "task_status",
                "token_leases",
            ),
            "desired_state",
        },
    },
}
"""What the packages and modules within another may import of each other; any, where not named.

`REST` are all that are not named, as one."""
HEAVY = ("aiohttp", "prometheus_client", "sqlalchemy", "pyspark", "rich", "sqlglot", "pandas", "yaml")


def modules(package: str) -> list[Path]:
    """All modules of a package."""
    return sorted((ROOT / package.replace(".", "/")).rglob("*.py"))


def imported_names(tree: ast.AST) -> Iterator[str]:
    """The dotted names that import statements anywhere in `tree` mention."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")


def tops(tree: ast.AST) -> set[str]:
    """The top-level packages imported anywhere in `tree`, functions included."""
    return {name.split(".")[0] for name in imported_names(tree)}


def rooms_of(package: str, tree: ast.AST) -> set[str]:
    """The packages and modules right below `package` that are imported anywhere in `tree`."""
    names = {
        f"{node.module}.{alias.name}" if isinstance(node, ast.ImportFrom) else alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    return {room_of(package, name) for name in names if name.startswith(f"{package}.")}


def room_of(package: str, name: str) -> str:
    """The room within `package` that the module of that dotted name is in."""
    room = name.split(".")[package.count(".") + 1]
    return room if room in ROOMS[package] or REST not in ROOMS[package] else REST


def module_level(tree: ast.Module) -> ast.Module:
    """What runs when the module is imported: function bodies and `if TYPE_CHECKING:` left out."""

    class Pruned(ast.NodeTransformer):
        def visit_FunctionDef(self, _node: ast.FunctionDef) -> None:
            return None

        def visit_AsyncFunctionDef(self, _node: ast.AsyncFunctionDef) -> None:
            return None

        def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
            return node.orelse if ast.unparse(node.test) == "TYPE_CHECKING" else node

    pruned: ast.Module = Pruned().visit(tree)
    return pruned


def loaded_after(statement: str) -> set[str]:
    """The top-level modules a fresh interpreter has loaded after `statement`."""
    script = f"import sys\n{statement}\nprint(*{{m.split('.')[0] for m in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_imports_point_down(package: str) -> None:
    """No module, nor any function in it, imports a package above or beside its own."""
    forbidden = MAY_IMPORT.keys() - MAY_IMPORT[package] - {package}
    wrong = {
        str(path.relative_to(ROOT)): sorted(found)
        for path in modules(package)
        if (found := tops(ast.parse(path.read_text())) & forbidden)
    }
    assert wrong == {}


@pytest.mark.parametrize(
    ("package", "room"), [(package, room) for package in ROOMS for room in ROOMS[package]]
)
def test_imports_between_rooms_point_down(package: str, room: str) -> None:
    """Within a package, too: no room imports one above or beside its own, not even for types."""
    wrong = {
        str(path.relative_to(ROOT)): sorted(found)
        for path in modules(package)
        if room_of(package, ".".join(path.relative_to(ROOT).with_suffix("").parts)) == room
        and (found := rooms_of(package, ast.parse(path.read_text())) - ROOMS[package][room] - {room})
    }
    assert wrong == {}


@pytest.mark.parametrize("package", ROOMS)
def test_there_is_no_circle_between_rooms(package: str) -> None:
    """Each stands in the table after all that it may import."""
    above: set[str] = set()
    for room, allowed in ROOMS[package].items():
        assert allowed <= above
        above.add(room)


@pytest.mark.parametrize("daemon", ["manager", "worker"])
def test_every_room_of_a_daemon_is_held(daemon: str) -> None:
    """None is left out of the table, and none is in it that is gone."""
    rooms = {path.relative_to(ROOT).with_suffix("").parts[1] for path in modules(daemon)}
    assert rooms - {"__init__"} == ROOMS[daemon].keys()


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_imports_are_absolute(package: str) -> None:
    """Relative imports would escape the check above."""
    relative = {
        str(path.relative_to(ROOT)): name
        for path in modules(package)
        for name in imported_names(ast.parse(path.read_text()))
        if name.startswith(".")
    }
    assert relative == {}


def test_only_worker_spark_imports_pyspark_when_loaded() -> None:
    """A worker's other modules can be imported, and tested, where no Spark is installed."""
    wrong = [
        str(path.relative_to(ROOT))
        for package in MAY_IMPORT
        for path in modules(package)
        if path.relative_to(ROOT).parts[:2] != ("worker", "spark")
        and {"pyspark", "py4j"} & tops(module_level(ast.parse(path.read_text())))
    ]
    assert wrong == []


@pytest.mark.parametrize("package", ["protocol", "assignors", "manager"])
def test_packages_load_without_spark(package: str) -> None:
    """`pip install sparkherd` without extras is a working manager: none of its modules needs pyspark."""
    names = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in modules(package)
        if path.parent.name != "migrations" or path.stem == "__init__"  # env.py is for alembic to run
    ]
    statements = "\n".join(f"import {name.removesuffix('.__init__')}" for name in names)
    assert "pyspark" not in loaded_after(statements)


@pytest.mark.parametrize("command", ["", "groups watch", "tasks apply", "workers drain", "completion"])
def test_help_loads_nothing_heavy(command: str) -> None:
    """`--help` answers at once: no server, database, Spark or terminal library is loaded for it."""
    args = [*command.split(), "--help"]
    statement = f"import cli.main\ntry: cli.main.main({args})\nexcept SystemExit: pass"
    assert not loaded_after(statement) & set(HEAVY)


@pytest.mark.parametrize(
    ("statement", "may_load"),
    [
        ("import sparkherd", set[str]()),
        ("from sparkherd import Assignor, Task, Member, holders, FencedError", set[str]()),
        ("from sparkherd import *", {"sqlalchemy"}),
    ],
)
def test_the_public_package_loads_what_is_asked_for(statement: str, may_load: set[str]) -> None:
    """An assignor, and a function that catches an error, pay for neither Spark nor a server or database."""
    assert loaded_after(statement) & set(HEAVY) <= may_load


def test_no_task_of_the_manager_ends_unseen() -> None:
    """All are begun in `manager.background.supervision`, which tells of whatever they raise."""
    beginners = {"create_task", "ensure_future", "TaskGroup", "run_coroutine_threadsafe"}
    begun = {
        str(path.relative_to(ROOT))
        for path in modules("manager")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute | ast.Name)
        and (node.attr if isinstance(node, ast.Attribute) else node.id) in beginners
    }
    assert begun == {"manager/background/supervision.py"}


def _of_aiohttp(base: ast.expr) -> bool:
    """Whether a class is derived from one of aiohttp's, as `web.Server` or by its own name."""
    name = ast.unparse(base)
    return name.startswith(("web.", "aiohttp.")) or hasattr(aiohttp, name)


@pytest.mark.parametrize("package", ["manager", "worker", "cli"])
def test_nothing_private_of_aiohttp_is_used(package: str) -> None:
    """By what is derived from its classes: that has no private name at all; other uses are ruff's to find."""
    wrong = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in modules(package)
        for kind in ast.walk(ast.parse(path.read_text()))
        if isinstance(kind, ast.ClassDef) and any(map(_of_aiohttp, kind.bases))
        for node in ast.walk(kind)
        if (name := getattr(node, "attr", getattr(node, "name", None))) and _is_private(name)
    ]
    assert wrong == []


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")
