"""Managers on one PostgreSQL that ask each other over https for what another one has."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import pytest
import trustme

from cli.client.admin_client import AdminClient, path_of
from manager.http.forwarding import FORWARDED_BY
from protocol.roles import Role
from tests.acceptance.processes import Daemon
from tests.acceptance.waiting import eventually
from tests.integration.manager.secured import Certificates, Tokens
from tests.integration.postgres import running
from worker.client.bearer import Bearer
from worker.client.tls import client_tls

if TYPE_CHECKING:
    import http.client
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = [pytest.mark.processes, pytest.mark.timeout(600)]

GROUPS = tuple(f"g{number:02}" for number in range(48))
"""So many that each of three managers has one."""
LEASE_MS = 20_000
"""Longer than a busy machine stands still: no group moves while it is asked about."""
TASK = {"definition": {"source": {"format": "rate"}, "sink": {"format": "noop"}}}
ON_THE_WAY = {421, 503}
"""Answers about a group that goes from one manager to another."""


class Answer(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: Any


class Manager(Daemon):
    """One that speaks https only, and logs JSON."""

    def __init__(self, name: str, folder: Path, *flags: str) -> None:
        args = ["manager", "--listen", "127.0.0.1:0", "--log-format", "json", "--lease-ms", str(LEASE_MS)]
        super().__init__(name, [*args, *flags], folder)

    def listens(self) -> None:
        """Wait until it serves."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("listening on https://"), self.log()
        self.url = line.removeprefix("listening on ").strip()

    def audited(self, operation: str) -> list[dict[str, Any]]:
        """What its log says of an operation."""
        lines = [msgspec.json.decode(line) for line in self.log().splitlines()]
        return [line for line in lines if line["event"] == "audit" and line["operation"] == operation]


class Cluster:
    """Three managers with certificates of one authority; the third trusts another one."""

    def __init__(self, folder: Path, database: str) -> None:
        self.certificates = Certificates(trustme.CA(), folder)
        (folder / "strange").mkdir()
        strange = Certificates(trustme.CA(), folder / "strange").ca
        ours = self.certificates.ca
        made = Tokens(database)
        self.tokens = {role: asyncio.run(made.make(role)) for role in (Role.ADMIN, Role.VIEWER)}
        self.managers: list[Manager] = []
        for name, trusted in (("asked", ours), ("owner", ours), ("mistrusting", strange)):
            cert, key = self.certificates.issue(name)
            flags = ["--tls-cert", cert, "--tls-key", key, "--tls-ca", trusted, "--tls-client-ca", ours]
            self.managers.append(Manager(name, folder, "--database", database, *flags))
        self.asked, self.owner, self.mistrusting = self.managers

    def settle(self) -> None:
        """All of them serve, and have their share of the groups."""
        for manager in self.managers:
            manager.listens()
        self.group = self.until(self._of_owner, "some group is the owner's, as all say")

    def until(self, look: Callable[[], Any], what: str) -> Any:
        return eventually(look, what, alive=self.managers)

    def _of_owner(self) -> str | None:
        for group in GROUPS:
            told = [self.once(each, "GET", f"/v1/coordinator?group={group}") for each in self.managers]
            if {each.body.get("coordinator", {}).get("url") for each in told} == {self.owner.url}:
                return group
        return None

    def once(
        self, manager: Manager, method: str, path: str, body: Any = None, role: Role = Role.ADMIN, **more: str
    ) -> Answer:
        """One request, as the command line would send it."""
        trusted = client_tls(self.certificates.ca, None, None)
        client = AdminClient([manager.url], bearer=Bearer(self.tokens[role]), tls=trusted)
        headers = {"Content-Type": "application/json"}
        headers |= {name.replace("_", "-"): value for name, value in more.items()}
        sent = b"" if body is None else msgspec.json.encode(body)
        with client.asking(manager.url, method, path, body=sent, headers=headers, timeout_s=60.0) as answer:
            is_json = answer.headers.get_content_type() == "application/json"
            text = answer.read()
            return Answer(answer.status, answer.headers, msgspec.json.decode(text) if is_json else text)

    def ask(self, *request: Any, **more: Any) -> Answer:
        """The same, until the group is not on its way between managers."""

        def settled() -> Answer | None:
            answer = self.once(*request, **more)
            return None if answer.status in ON_THE_WAY else answer

        answer: Answer = self.until(settled, f"{request[1:3]} is answered")
        return answer


@contextmanager
def _stopped_at_the_end(made: list[Manager]) -> Iterator[None]:
    try:
        yield
    finally:
        for manager in made:
            manager.stop()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running() as postgres:
        made = Cluster(tmp_path_factory.mktemp("tls"), postgres.new_database("postgresql+asyncpg"))
        with _stopped_at_the_end(made.managers):
            made.settle()
            yield made


def test_a_manager_asks_the_owner_over_https(cluster: Cluster) -> None:
    """Tasks, conditions, pages: the owner's answers, by the admin's own token; both write down whose."""
    path = path_of("groups", cluster.group, "tasks", "t")
    made = cluster.ask(cluster.asked, "PUT", path, TASK)
    assert made.status == 201
    assert cluster.ask(cluster.asked, "PUT", path, TASK, If_Match='"another"').status == 412
    assert cluster.ask(cluster.asked, "PUT", path, TASK, If_Match=made.headers["ETag"]).status == 200
    assert cluster.ask(cluster.owner, "GET", path).headers["ETag"] == made.headers["ETag"]
    page = cluster.ask(cluster.asked, "GET", f"/groups/{cluster.group}/tasks/t")
    assert (page.status, page.headers.get_content_type()) == (200, "text/html")
    assert b"<h1" in page.body
    at_owner, at_asked = cluster.owner.audited("putTask"), cluster.asked.audited("putTask")
    assert [line["result"] for line in at_asked] == ["NONE", "PRECONDITION_FAILED", "NONE"]
    assert [line["result"] for line in at_owner] == ["NONE", "PRECONDITION_FAILED", "NONE"]
    assert {line["forwarded_by"] for line in at_owner} == {cluster.asked.url.removeprefix("https://")}
    assert {line["who"] for line in at_owner} == {line["who"] for line in at_asked}


def test_a_token_is_asked_for_on_both_sides(cluster: Cluster) -> None:
    """What a viewer may not is refused by whoever is asked, also if it says that a manager asks."""
    path = f"/v1/groups/{cluster.group}/rebalance"
    told = {FORWARDED_BY.replace("-", "_"): "a-manager"}
    assert cluster.ask(cluster.asked, "POST", path, {}, role=Role.VIEWER).status == 403
    assert cluster.ask(cluster.owner, "POST", path, {}, role=Role.VIEWER, **told).status == 403
    assert cluster.ask(cluster.asked, "GET", f"/groups/{cluster.group}", role=Role.VIEWER).status in {
        200,
        404,
    }


def test_who_does_not_trust_the_owner_s_authority_tells_it_nothing(cluster: Cluster) -> None:
    """Neither the request nor the token gets there; the admin is told who has the group."""
    path = f"/v1/groups/{cluster.group}/tasks/t/restart"

    def refused() -> Answer | None:
        answer = cluster.once(cluster.mistrusting, "POST", path, {})
        return answer if "cannot be reached" in answer.body["message"] else None

    answer: Answer = cluster.until(refused, "the owner is not trusted")
    assert (answer.status, answer.body["error"]) == (503, "COORDINATOR_NOT_AVAILABLE")
    assert cluster.owner.url.removeprefix("https://") in answer.body["message"]
    assert cluster.owner.audited("restartTask") == []
