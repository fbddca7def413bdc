"""Three managers on PostgreSQL, three workers, twelve tasks, and somebody whom alarms are told."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import yaml

from cli.client.admin_client import AdminClient, path_of
from protocol.errors import RefusedError
from protocol.messages.alarms import AlarmListResponse
from tests.acceptance.group_view import GROUP, GroupView
from tests.acceptance.processes import Daemon, Manager, sparkherd, worker_args
from tests.acceptance.waiting import eventually
from tests.kafka import broker
from tests.soak.places import of_ids
from tests.soak.tasks import TRIGGER, Kind

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.acceptance.receiver import Receiver
    from tests.soak.tasks import Herd

MANAGERS: Final = ("one", "two", "three")
WORKERS: Final = ("anna", "berta", "clara")
KINDS: Final = (
    "appended-0",
    "appended-1",
    "appended-2",
    "counted-update-postgres",
    "counted-complete-postgres",
    "windows-0",
    "files-0",
    "distinct-postgres",
    "in-python-postgres",
    "joined",
    "kafka",
)
"""Of those of the soak; the twelfth task is `stumbling`."""
SETTLES_S: Final = 900.0
JARS: Final = broker.JARS.parent / "spark" / "kafka"


@dataclass
class Stage:
    """All of it; `stop` ends what is left."""

    folder: Path
    database: str
    receiver: Receiver
    kinds: list[Kind]
    managers: dict[str, Manager] = field(default_factory=dict)
    workers: dict[str, Daemon] = field(default_factory=dict)
    on_look: Callable[[], None] = lambda: None
    """What is done whenever somebody waits."""

    def open(self) -> None:
        """Managers with the rules that `sparkherd alarms init` prints, then workers and tasks."""
        receivers = self.folder / "receivers.yaml"
        receivers.write_text(json.dumps({"receivers": {"ops": self._ops()}}))
        for name in MANAGERS:
            flags = ("--alarm-receivers", str(receivers))
            self.managers[name] = Manager(self.folder, *flags, name=name, database=self.database)
        self._apply_rules()
        for name in WORKERS:
            self.start_worker(name)
        for kind in self.kinds:
            self.view.put(kind.name, kind.definition)
        self.await_settled("all tasks run")

    def _ops(self) -> dict[str, str]:
        return {"kind": "webhook", "url": self.receiver.url}

    def _apply_rules(self) -> None:
        rules = yaml.safe_load(self.command("alarms", "init", is_remote=False))
        for rule in rules["rules"]:
            rule["receivers"] = ["ops"]
        file = self.folder / "alarms.yaml"
        file.write_text(yaml.safe_dump(rules))
        self.command("alarms", "apply", str(file))

    @property
    def view(self) -> GroupView:
        """The group as its admin sees it."""
        return GroupView(AdminClient(self.urls.split(",")))

    @property
    def urls(self) -> str:
        """Of all managers, as users give them."""
        return ",".join(manager.url for manager in self.managers.values())

    @property
    def daemons(self) -> list[Daemon]:
        """Everything that should run."""
        return [*self.managers.values(), *self.workers.values()]

    def start_worker(self, name: str) -> None:
        """One more."""
        args = worker_args(name, self.urls, GROUP, self.folder)
        for package in ("tests.soak", "tests.quiet_hour"):
            args += ["--allow-entrypoint", package]
        self.workers[name] = Daemon(name, [*args, "--jars", str(JARS)], self.folder)

    def end_worker(self, name: str) -> None:
        """In order, for good."""
        code = self.workers.pop(name).terminate()
        assert code == 0, f"worker {name} ended with {code}"

    def command(self, *words: str, is_remote: bool = True) -> str:
        """Run `sparkherd`, which has to do what it is told; returns what it prints."""
        remote = ("--manager", self.urls) if is_remote else ()
        done = sparkherd(*words, *remote, cwd=self.folder)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    def await_settled(self, what: str, but: int = 0) -> None:
        """Every worker is there, and every task but so many does batches."""
        self.wait(lambda: self._is_settled(but), what)

    def _is_settled(self, but: int) -> bool:
        described = self.view.describe()
        states = [(task.state, task.owner == task.assigned_to) for task in self.view.tasks().values()]
        running = states.count(("RUNNING", True))
        return (
            described.state == "Stable"
            and len(described.members) == len(self.workers)
            and running == len(states) - but
        )

    def wait(self, look: Callable[[], Any], what: str) -> None:
        """Until `look` finds something; no daemon may end meanwhile. A group may be on its way just then."""

        def seen() -> Any:
            self.on_look()
            try:
                return look()
            except RefusedError as refusal:
                if not refusal.failure.code.retriable:
                    raise
                return None

        eventually(seen, what, alive=self.daemons, within_s=SETTLES_S)

    def told(self) -> list[dict[str, Any]]:
        """Every alarm that anybody was told of, in order, each once."""
        events = [self.receiver.event(number) for number in self.receiver.first_seen()]
        return [event["alarm"] for event in events if event.get("alarm")]

    def remembered(self) -> AlarmListResponse:
        """Alarms that fire, and that are over, as the managers know them."""
        path = f"{path_of('groups', GROUP, 'alarms')}?past=200"
        return AdminClient(self.urls.split(",")).get(path, AlarmListResponse)

    def stop(self) -> None:
        """Workers first, so that they can leave."""
        for daemon in reversed(self.daemons):
            daemon.stop()


def kinds_of(herd: Herd, folder: Path) -> list[Kind]:
    """Eleven of the soak's, and the one whose query fails now and then."""
    found = {kind.name: kind for kind in herd.tasks()}
    return [*(found[name] for name in KINDS), _stumbling(found["appended-1"], herd, folder)]


def stone(folder: Path) -> Path:
    """What has a batch of `stumbling` fail."""
    return folder / "stone"


def _stumbling(like: Kind, herd: Herd, folder: Path) -> Kind:
    sink = {
        **like.definition["sink"],
        "options": {**like.definition["sink"]["options"], "table": "stumbling"},
    }
    definition = {
        "entrypoint": "tests.quiet_hour.queries:stumbling",
        "options": {"path": str(herd.feed.clean), "stone": str(stone(folder))},
        "fenced": True,
        "sink": sink,
        "trigger": TRIGGER,
    }
    return Kind(
        "stumbling", definition, lambda rows: of_ids(herd.databases["postgres"].ids("stumbling"), rows)
    )
