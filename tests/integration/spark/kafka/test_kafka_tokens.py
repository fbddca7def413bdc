"""OAUTHBEARER: where a definition can have the worker fetch tokens from (docs/security.md)."""

from __future__ import annotations

import asyncio
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from worker.query_engine import QueryError
from worker.spark.classic.kafka import OAUTH_URLS, allow_no_oauth_urls

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.integration.spark.conftest import Database
    from tests.kafka.topic import Topic

SQL = "SELECT offset FROM source"
OAUTH = "org.apache.kafka.common.security.oauthbearer"
SECRET = "0nly-for-The-Endpoint"


class Endpoint:
    """A server that is no token endpoint; `asked` are the paths that it was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                endpoint.asked.append(self.path)
                self.send_response(404)
                self.end_headers()
                self.wfile.write(b"internal-page")

            def log_message(self, *_: Any) -> None:
                """Nobody wants to read it."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/internal"


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    made = Endpoint()
    serving = threading.Thread(target=made.server.serve_forever)
    serving.start()
    yield made
    made.server.shutdown()
    serving.join()
    made.server.server_close()


def oauth(topic: Topic, url: str) -> dict[str, Any]:
    """A source that asks for tokens there."""
    login = f'{OAUTH}.OAuthBearerLoginModule required clientId="me" clientSecret="{SECRET}";'
    return topic.source(
        options={
            "kafka.bootstrap.servers": topic.broker.bootstrap_of("SASL"),
            "kafka.security.protocol": "SASL_PLAINTEXT",
            "kafka.sasl.mechanism": "OAUTHBEARER",
            "kafka.sasl.jaas.config": login,
            "kafka.sasl.login.callback.handler.class": f"{OAUTH}.OAuthBearerLoginCallbackHandler",
            "kafka.sasl.oauthbearer.token.endpoint.url": url,
        }
    )


async def refused(start: Any, source: dict[str, Any], database: Database) -> QueryError:
    """Why a query with that source does not start."""
    with pytest.raises(QueryError) as told:
        await start(source=source, sql=SQL, sink=database.sink())
    return told.value


async def test_tokens_are_fetched_from_no_url_that_the_worker_does_not_allow(
    start: Any, topic: Topic, database: Database, endpoint: Endpoint, tmp_path: Path
) -> None:
    """Whoever writes definitions would read pages of other machines, and call what must not be called."""
    secret = tmp_path / "file"
    secret.write_text("a.b.c")
    for url in (endpoint.url, f"file://{secret}"):
        error = await refused(start, oauth(topic, url), database)
        line = error.cause.partition("\n")[0]
        assert line.startswith(f"source: IllegalArgumentException: {url} is not allowed.")
        assert f"spark.driver.extraJavaOptions=-D{OAUTH_URLS}=URL" in line
        assert error.permanent
    assert endpoint.asked == []


async def test_tokens_are_fetched_where_the_worker_allows_it(
    start: Any, topic: Topic, database: Database, endpoint: Endpoint, spark: Any
) -> None:
    """The worker posts there; what it is answered is in the cause."""
    system = spark._jvm.java.lang.System
    before = system.setProperty(OAUTH_URLS, f"https://login.example,{endpoint.url}")
    try:
        error = await refused(start, oauth(topic, endpoint.url), database)
    finally:
        system.setProperty(OAUTH_URLS, before)
    assert "error response {internal-page}" in error.cause
    assert endpoint.asked == ["/internal"]
    assert SECRET not in error.cause


async def test_a_worker_s_own_list_of_urls_stays(spark: Any) -> None:
    """It came with the options of the JVM."""
    system = spark._jvm.java.lang.System
    before = system.setProperty(OAUTH_URLS, "https://login.example")
    try:
        await asyncio.to_thread(allow_no_oauth_urls, spark._jvm)
        assert system.getProperty(OAUTH_URLS) == "https://login.example"
    finally:
        system.setProperty(OAUTH_URLS, before)
