from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from protocol.errors import ErrorCode, Failure
from protocol.messages.membership import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinRequest,
    Leaver,
    LeaveRequest,
    OfferRequest,
    SyncRequest,
)
from protocol.messages.ownership import ClaimRequest, LagRequest, ReleaseRequest, ReportRequest
from tests.fakes.clock import FakeClock
from tests.unit.worker.client.servers import hangs_up, never_answers, nobody, says, says_text
from worker.client.discovery import Discovery
from worker.client.group_client import GroupClient, Timeouts

if TYPE_CHECKING:
    from tests.unit.worker.client.servers import Cluster, Server
    from worker.client.transport import Transport

BEAT = HeartbeatRequest(member_id="m", generation_id=1)
TIMEOUTS = Timeouts.of(session_timeout_ms=10_000, rebalance_timeout_ms=60_000)
OK = HeartbeatResponse(tasks_revision=0)

REQUESTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "join": (
        JoinRequest(
            member_id="m",
            session_timeout_ms=1,
            rebalance_timeout_ms=1,
            protocol_type="sparkherd",
            protocols=(),
        ),
        {
            "generation_id": 1,
            "protocol_type": "sparkherd",
            "protocol_name": "sticky",
            "leader_id": "m",
            "member_id": "m",
        },
    ),
    "offer": (OfferRequest(member_id="m", generation_id=1, after="t"), {"tasks": []}),
    "sync": (
        SyncRequest(member_id="m", generation_id=1),
        {"protocol_type": None, "protocol_name": None, "assignment": None},
    ),
    "heartbeat": (BEAT, {"tasks_revision": 0}),
    "claim": (ClaimRequest(member_id="m", generation_id=1, tasks=("t",)), {"granted": []}),
    "release": (ReleaseRequest(member_id="m", tasks={"t": 1}), {"tasks": {"t": "NONE"}}),
    "report": (ReportRequest(member_id="m", tasks=()), {"tasks": {}}),
    "lag": (LagRequest(member_id="m"), {"tasks": []}),
    "leave": (LeaveRequest(members=(Leaver("m"),)), {"members": []}),
}


class Bench:
    """A client of group g, and when it was told that something was accepted."""

    def __init__(self, transport: Transport, *managers: str, timeouts: Timeouts = TIMEOUTS) -> None:
        self.clock = FakeClock(now=50.0)
        self.accepted: list[float] = []
        self.client = GroupClient(
            transport,
            Discovery(transport, managers, "g"),
            group="g",
            timeouts=timeouts,
            now=self.clock.now,
            accepted=self.accepted.append,
        )

    async def beat(self) -> HeartbeatResponse | Failure:
        return await self.client.heartbeat(BEAT)


def ready(server: Server) -> Server:
    """Coordinates the group and accepts heartbeats."""
    server.coordinates()
    server.group("heartbeat", says(200, tasks_revision=0))
    return server


@pytest.mark.parametrize("operation", REQUESTS)
async def test_every_request_goes_to_its_path_and_is_answered_typed(
    operation: str, transport: Transport, cluster: Cluster
) -> None:
    """One method a request of protocol §3 and §5."""
    server = ready(await cluster.start())
    request, body = REQUESTS[operation]
    server.group(operation, says(200, **body))
    bench = Bench(transport, server.url)
    answer = await getattr(bench.client, operation)(request)
    assert not isinstance(answer, Failure)
    assert len(server.bodies(operation)) == 1
    assert bench.accepted == ([] if operation == "leave" else [50.0])


@pytest.mark.parametrize("operation", REQUESTS)
async def test_a_refused_request_renews_no_lease(
    operation: str, transport: Transport, cluster: Cluster
) -> None:
    """Only what the manager accepts renews the session."""
    server = ready(await cluster.start())
    server.group(operation, says(404, error="UNKNOWN_MEMBER_ID", message="who?"))
    bench = Bench(transport, server.url)
    answer = await getattr(bench.client, operation)(REQUESTS[operation][0])
    assert answer == Failure(ErrorCode.UNKNOWN_MEMBER_ID, "who?")
    assert bench.accepted == []


async def test_a_heartbeat_told_of_a_rebalance_renews_the_lease(
    transport: Transport, cluster: Cluster
) -> None:
    """The manager renews the session all the same (protocol §4)."""
    server = ready(await cluster.start())
    server.group("heartbeat", says(409, error="REBALANCE_IN_PROGRESS", message="m"))
    bench = Bench(transport, server.url)
    await bench.beat()
    assert bench.accepted == [50.0]


async def test_the_coordinator_is_looked_up_once(transport: Transport, cluster: Cluster) -> None:
    """And asked from then on; any manager can tell who it is."""
    first, second = await cluster.start(), ready(await cluster.start())
    first.coordinates(second)
    bench = Bench(transport, first.url + "/")
    assert [await bench.beat() for _ in range(3)] == [OK] * 3
    assert [path for path, _ in first.asked] == ["/v1/coordinator?group=g"]
    assert len(second.bodies("heartbeat")) == 3


async def test_managers_that_are_away_are_passed_over(transport: Transport, cluster: Cluster) -> None:
    """The next one is asked; the one that answered is asked first the next time."""
    server = ready(await cluster.start())
    with nobody() as url:
        assert await Bench(transport, url, server.url).beat() == OK


async def test_no_manager_at_all_is_one_line_with_every_url(transport: Transport) -> None:
    """What the user reads when nothing was started yet."""
    with nobody() as one, nobody() as other:
        urls = [one, other]
        answer = await Bench(transport, *urls).beat()
    assert isinstance(answer, Failure)
    assert answer.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert answer.message.startswith("no manager answers: ")
    assert all(url in answer.message for url in urls)


async def test_a_moved_group_is_followed(transport: Transport, cluster: Cluster) -> None:
    """NOT_COORDINATOR names who is; nobody needs to be asked again."""
    old, new = ready(await cluster.start()), ready(await cluster.start())
    moved = says(421, error="NOT_COORDINATOR", message="m", coordinator={"id": "n", "url": new.url + "/"})
    old.group("heartbeat", moved)
    bench = Bench(transport, old.url)
    answer = await bench.beat()
    assert isinstance(answer, Failure)
    assert answer.code is ErrorCode.NOT_COORDINATOR
    assert await bench.beat() == OK
    assert len(new.bodies("heartbeat")) == 1
    assert [path for path, _ in new.asked] == ["/v1/groups/g/heartbeat"]


@pytest.mark.parametrize("where", [None, "nonsense", {"id": "n"}])
async def test_a_group_moved_to_nobody_knows_where_is_looked_up(
    where: Any, transport: Transport, cluster: Cluster
) -> None:
    """NOT_COORDINATOR with no coordinator, or with something else in its place."""
    old, new = ready(await cluster.start()), ready(await cluster.start())
    old.group("heartbeat", says(421, error="NOT_COORDINATOR", message="m", coordinator=where))
    bench = Bench(transport, old.url)
    await bench.beat()
    old.coordinates(new)
    assert await bench.beat() == OK


@pytest.mark.parametrize(
    "trouble",
    [
        hangs_up,
        says(503, error="COORDINATOR_NOT_AVAILABLE", message="stopping"),
        says_text(502, "<html>Bad Gateway</html>"),
    ],
)
async def test_a_coordinator_in_trouble_is_looked_up_again(
    trouble: Any, transport: Transport, cluster: Cluster
) -> None:
    """It may have handed the group over."""
    old, new = ready(await cluster.start()), ready(await cluster.start())
    bench = Bench(transport, old.url)
    await bench.beat()
    old.group("heartbeat", trouble)
    old.coordinates(new)
    answer = await bench.beat()
    assert isinstance(answer, Failure)
    assert answer.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert await bench.beat() == OK


async def test_a_dead_coordinator_is_found_again_through_the_others(
    transport: Transport, cluster: Cluster
) -> None:
    """Any manager of the cluster will do."""
    old, new = ready(await cluster.start()), ready(await cluster.start())
    bench = Bench(transport, old.url, new.url)
    await bench.beat()
    await cluster.stop(old)
    assert isinstance(await bench.beat(), Failure)
    assert await bench.beat() == OK


@pytest.mark.parametrize("code", [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.REBALANCE_IN_PROGRESS])
async def test_a_coordinator_that_is_busy_is_not_left(
    code: ErrorCode, transport: Transport, cluster: Cluster
) -> None:
    """Same coordinator, a little later (protocol §7)."""
    server = ready(await cluster.start())
    bench = Bench(transport, server.url)
    server.group("heartbeat", says(code.status, error=code.name, message="m"))
    await bench.beat()
    await bench.beat()
    assert [path for path, _ in server.asked].count("/v1/coordinator?group=g") == 1


async def test_a_lookup_refused_for_good_is_told_as_it_is(transport: Transport, cluster: Cluster) -> None:
    """Trying again would not help; a person has to read it."""
    server = await cluster.start()
    server.answers["/v1/coordinator"] = says(401, error="UNAUTHENTICATED", message="who are you?")
    answer = await Bench(transport, server.url).beat()
    assert answer == Failure(ErrorCode.UNAUTHENTICATED, "who are you?")


@pytest.mark.parametrize(
    ("session_ms", "heartbeat_s", "batch_s"),
    [(10_000, 5.5, 10.0), (60_000, 8.0, 10.0), (3000, 3.75, 3.0), (1000, 3.25, 1.0)],
)
def test_a_lost_heartbeat_leaves_time_for_another(
    session_ms: int, heartbeat_s: float, batch_s: float
) -> None:
    """Time-outs shrink with the session; a join's outlasts the rebalance timeout."""
    timeouts = Timeouts.of(session_timeout_ms=session_ms, rebalance_timeout_ms=60_000)
    assert timeouts.heartbeat_s(3000) == heartbeat_s
    assert timeouts.batch_s == batch_s
    assert timeouts.parked_s == 65.0


async def test_a_page_of_the_offer_is_waited_for_as_a_heartbeat_is(
    transport: Transport, cluster: Cluster
) -> None:
    """Not for a whole session, in which the leader would lose its lease on itself."""
    server = await cluster.start()
    server.coordinates()
    server.group("offer", never_answers)
    bench = Bench(transport, server.url, timeouts=Timeouts(parked_s=60, margin_s=0.05, batch_s=60))
    answer = await bench.client.offer(OfferRequest(member_id="m", generation_id=1, after="t"))
    assert isinstance(answer, Failure)
    assert answer.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
