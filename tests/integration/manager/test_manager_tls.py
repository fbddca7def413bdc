"""TLS over real sockets, with certificates of an authority of the test's own."""

from __future__ import annotations

import asyncio
import os
import signal
import ssl
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
import trustme

from cli.client.admin_client import AdminClient, UnreachableError
from protocol.errors import StartupError
from protocol.messages.groups import GroupListResponse
from protocol.roles import Role
from tests.fakes.query_engine import FakeEngine
from tests.integration.manager.secured import Certificates, Tokens, Web, serving
from worker import daemon as worker_daemon
from worker.client.bearer import Bearer
from worker.client.tls import client_tls
from worker.settings import WorkerSettings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def database(tmp_path: Path) -> str:
    return f"sqlite+aiosqlite:///{tmp_path}/m.db"


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates(trustme.CA(), tmp_path)


@pytest.fixture
def tls(certificates: Certificates) -> dict[str, Any]:
    """Settings of a manager with a certificate."""
    cert, key = certificates.issue("manager")
    return {"tls_cert": cert, "tls_key": key, "tls_ca": certificates.ca}


async def test_only_https_is_spoken(
    database: str, certificates: Certificates, tls: dict[str, Any], session: aiohttp.ClientSession
) -> None:
    """With a certificate that the client's authority has signed; a stranger's is refused by the client."""
    async with serving(database, **tls) as url:
        assert url.startswith("https://127.0.0.1:")
        status, _ = await Web(session, url, client_tls(certificates.ca, None, None)).ask("GET", "/healthz")
        assert status == 200
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await Web(session, url).ask("GET", "/healthz")
        with pytest.raises(aiohttp.ClientError):
            await Web(session, url.replace("https", "http")).ask("GET", "/healthz")


async def test_browsers_are_told_to_come_back_by_https(
    database: str, certificates: Certificates, tls: dict[str, Any], session: aiohttp.ClientSession
) -> None:
    """By every answer over TLS, refusals and pages too, for as long as was set; never without TLS."""
    trusted = client_tls(certificates.ca, None, None) or True
    await Tokens(database).make(Role.ADMIN)
    for chosen, told in (({}, "max-age=31536000"), ({"hsts_max_age_s": 0}, "max-age=0")):
        async with serving(database, **tls, **chosen) as url:
            for path in ("/healthz", "/v1/groups", "/login", "/nowhere"):
                async with session.get(url + path, ssl=trusted) as answer:
                    assert answer.headers.getall("Strict-Transport-Security") == [told], path
    async with serving(database) as url, session.get(url + "/login") as answer:
        assert "Strict-Transport-Security" not in answer.headers


async def test_old_versions_of_tls_are_refused(
    database: str, certificates: Certificates, tls: dict[str, Any], session: aiohttp.ClientSession
) -> None:
    """Before 1.2 nobody should speak it any more."""
    old = ssl.create_default_context(cafile=certificates.ca)
    old.set_ciphers("DEFAULT:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        old.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        old.minimum_version = ssl.TLSVersion.TLSv1
    async with serving(database, **tls) as url:
        with pytest.raises(aiohttp.ClientConnectorError):
            await Web(session, url, old).ask("GET", "/healthz")


async def test_the_command_line_speaks_it(
    database: str, certificates: Certificates, tls: dict[str, Any]
) -> None:
    """With a token in the header, and not without the authority."""
    text = await Tokens(database).make(Role.VIEWER)
    async with serving(database, **tls) as url:
        trusting = AdminClient([url], bearer=Bearer(text), tls=client_tls(certificates.ca, None, None))
        listed = await asyncio.to_thread(lambda: trusting.get("/v1/groups", GroupListResponse))
        assert listed.groups == ()
        with pytest.raises(UnreachableError, match="certificate"):
            await asyncio.to_thread(lambda: AdminClient([url]).get("/v1/groups", GroupListResponse))


class Herdsman:
    """A whole worker with a fake engine, in the test's own loop."""

    def __init__(self, **settings: Any) -> None:
        self.joined = asyncio.Event()
        self.settings = WorkerSettings(group="g", session_timeout_ms=600_000, **settings)
        self.running = asyncio.ensure_future(worker_daemon.run(self.settings, self._engine, self._say))

    def _engine(self, _: WorkerSettings, __: Callable[[], bool]) -> FakeEngine:
        return FakeEngine()

    def _say(self, line: str) -> None:
        if line.startswith("joined"):
            self.joined.set()

    async def until_joined(self) -> None:
        """It is a member; fails if it ends before that."""
        waiting = asyncio.ensure_future(self.joined.wait())
        await asyncio.wait({waiting, self.running}, return_when=asyncio.FIRST_COMPLETED)
        assert self.joined.is_set(), self.running.result()

    async def end(self) -> None:
        """Cut it off."""
        self.running.cancel()
        await asyncio.wait({self.running})


async def test_a_worker_needs_its_token_and_its_certificate(
    database: str, certificates: Certificates, tls: dict[str, Any], tmp_path: Path
) -> None:
    """Without one of them it is refused for good (exit code 5); with both it joins and sends heartbeats."""
    (tmp_path / "token").write_text(await Tokens(database).make(Role.WORKER, "g") + "\n")
    cert, key = certificates.issue("worker")
    shown = {"tls_ca": certificates.ca, "tls_cert": cert, "tls_key": key}
    token = {"token_file": str(tmp_path / "token")}
    async with serving(database, **tls, tls_client_ca=certificates.ca) as url:
        without_token = Herdsman(manager=(url,), **shown)
        assert await without_token.running == 5
        without_certificate = Herdsman(manager=(url,), tls_ca=certificates.ca, **token)
        assert await without_certificate.running == 5
        worker = Herdsman(manager=(url,), **shown, **token)
        await worker.until_joined()
        await worker.end()


async def test_a_certificate_of_a_strange_authority_is_refused(
    database: str,
    certificates: Certificates,
    tls: dict[str, Any],
    session: aiohttp.ClientSession,
    tmp_path: Path,
) -> None:
    """Even for what needs none: who shows one shows a good one."""
    (tmp_path / "strange").mkdir()
    cert, key = Certificates(trustme.CA(), tmp_path / "strange").issue("worker")
    strange = client_tls(certificates.ca, cert, key)
    async with serving(database, **tls, tls_client_ca=certificates.ca) as url:
        with pytest.raises((aiohttp.ClientError, OSError)):
            await Web(session, url, strange).ask("GET", "/healthz")
        bare = Web(session, url, client_tls(certificates.ca, None, None))
        assert (await bare.ask("GET", "/healthz"))[0] == 200
        assert (await bare.ask("POST", "/v1/groups/g/heartbeat", body={}))[0] == 401


async def test_a_new_certificate_counts_after_sighup(
    database: str, certificates: Certificates, tls: dict[str, Any], tmp_path: Path
) -> None:
    """For connections from then on; what is of no use leaves the old one in place."""
    async with serving(database, **tls) as url:
        first = await _serial(url, certificates)
        certificates.issue("manager")
        assert await _serial(url, certificates) == first
        os.kill(os.getpid(), signal.SIGHUP)
        while (second := await _serial(url, certificates)) == first:
            pass
        (tmp_path / "manager.pem").write_text("nonsense")
        os.kill(os.getpid(), signal.SIGHUP)
        assert await _serial(url, certificates) == second


async def _serial(url: str, certificates: Certificates) -> str:
    port = int(url.rpartition(":")[2])
    context = client_tls(certificates.ca, None, None)
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    serial: str = writer.get_extra_info("peercert")["serialNumber"]
    writer.close()
    await writer.wait_closed()
    return serial


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        (
            {"tls_cert": "absent.pem", "tls_key": "absent.key"},
            "--tls-cert absent.pem, --tls-key absent.key: No such",
        ),
        ({"tls_cert": "absent.pem"}, "--tls-cert and --tls-key go together"),
        ({"tls_client_ca": "ca.pem"}, "--tls-client-ca goes with"),
        ({"tls_ca": "absent.pem"}, "--tls-ca absent.pem: No such"),
        ({"tls_cert": "own", "tls_key": __file__}, "--tls-cert own, --tls-key .*: "),
    ],
)
async def test_files_of_no_use_are_one_line(database: str, settings: dict[str, Any], fault: str) -> None:
    """That names the setting, and before the database is touched."""
    with pytest.raises(StartupError, match=rf"^{fault}"):
        async with serving(database, **settings):
            pass
    with pytest.raises(StartupError, match=r"^--tls-ca nowhere: No such file"):
        client_tls("nowhere", None, None)
    with pytest.raises(StartupError, match=r"^--tls-cert and --tls-key go together"):
        client_tls(None, "x", None)
