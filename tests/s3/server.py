"""A stand-in for S3 in this process, as much of it as Hadoop's S3A asks for when files are small.

A put is one step under a lock, so of two with `If-None-Match: *` the second is refused, as S3 has it.
Signatures are not looked at.
"""

from __future__ import annotations

import hashlib
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

HOST: Final = "127.0.0.1"
BUCKET: Final = "lake"
_META: Final = "x-amz-meta-"
_CONDITION: Final = "if-none-match"


@dataclass
class Stored:
    """One object."""

    body: bytes
    meta: Mapping[str, str]
    at: str = field(default_factory=lambda: formatdate(usegmt=True))

    @property
    def headers(self) -> dict[str, str]:
        """What tells of it."""
        tag = f'"{hashlib.md5(self.body).hexdigest()}"'
        return {"ETag": tag, "Last-Modified": self.at, "Accept-Ranges": "bytes", **self.meta}


class Store:
    """The objects of the one bucket, by key.

    `refused` are those of puts that found something there, `missed` those that were asked for and not there.
    So many of the next puts as `unanswered` says are done, and their connections closed without a word.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.objects: dict[str, Stored] = {}
        self.refused: list[str] = []
        self.missed: list[str] = []
        self.unanswered = 0

    def put(self, key: str, body: bytes, meta: Mapping[str, str], *, is_conditional: bool) -> bool:
        """Whether it was put."""
        with self.lock:
            if is_conditional and key in self.objects:
                self.refused.append(key)
                return False
            self.objects[key] = Stored(body, dict(meta))
            return True

    def listing(self, prefix: str, delimiter: str, after: str) -> str:
        """All keys in order; those with the delimiter behind the prefix as one."""
        with self.lock:
            found = {key: self.objects[key] for key in sorted(self.objects) if key.startswith(prefix)}
        common, contents = set(), []
        for key, stored in found.items():
            head, mark, _ = key[len(prefix) :].partition(delimiter) if delimiter else ("", "", "")
            if mark:
                common.add(prefix + head + mark)
            elif key > after:
                contents.append(_entry(key, stored))
        folders = "".join(
            f"<CommonPrefixes><Prefix>{escape(each)}</Prefix></CommonPrefixes>" for each in sorted(common)
        )
        count = f"<KeyCount>{len(contents) + len(common)}</KeyCount><MaxKeys>5000</MaxKeys>"
        inside = (
            f"<Name>{BUCKET}</Name><Prefix>{escape(prefix)}</Prefix>{count}<IsTruncated>false</IsTruncated>"
        )
        return f"<ListBucketResult>{inside}{''.join(contents)}{folders}</ListBucketResult>"


def _entry(key: str, stored: Stored) -> str:
    tag = escape(stored.headers["ETag"])
    size = f"<Size>{len(stored.body)}</Size><StorageClass>STANDARD</StorageClass>"
    at = "<LastModified>2026-01-01T00:00:00.000Z</LastModified>"
    return f"<Contents><Key>{escape(key)}</Key>{at}<ETag>{tag}</ETag>{size}</Contents>"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    store: Store

    def log_message(self, *_: object) -> None:
        """Not to the terminal."""

    def do_PUT(self) -> None:
        body = self._body()
        meta = {name.lower(): text for name, text in self.headers.items() if name.lower().startswith(_META)}
        if source := self.headers.get("x-amz-copy-source"):
            return self._copy(unquote(source).lstrip("/").partition("/")[2])
        is_conditional = self.headers.get(_CONDITION) == "*"
        if self.store.put(self._key, body, meta, is_conditional=is_conditional):
            if self.store.unanswered:
                self.store.unanswered -= 1
                self.close_connection = True
                return None
            return self._answer(200, headers=self.store.objects[self._key].headers)
        return self._error(412, "PreconditionFailed")

    def do_HEAD(self) -> None:
        stored = self.store.objects.get(self._key)
        if stored is None:
            self.store.missed.append(self._key)
            return self._answer(404 if self._key else 200)
        return self._answer(200, headers={**stored.headers, "Content-Length": str(len(stored.body))})

    def do_GET(self) -> None:
        if not self._key:
            asked = {name: texts[0] for name, texts in parse_qs(urlsplit(self.path).query).items()}
            listing = self.store.listing(
                asked.get("prefix", ""), asked.get("delimiter", ""), asked.get("start-after", "")
            )
            return self._answer(200, listing.encode())
        stored = self.store.objects.get(self._key)
        if stored is None:
            return self._error(404, "NoSuchKey")
        given = self.headers.get("Range")
        if given is None:
            return self._answer(200, stored.body, stored.headers)
        first, _, last = given.removeprefix("bytes=").partition("-")
        size = len(stored.body)
        start, end = (
            (int(first), min(int(last or size - 1), size - 1)) if first else (size - int(last), size - 1)
        )
        part = {"Content-Range": f"bytes {start}-{end}/{size}"}
        return self._answer(206, stored.body[start : end + 1], {**stored.headers, **part})

    def do_DELETE(self) -> None:
        with self.store.lock:
            self.store.objects.pop(self._key, None)
        self._answer(204)

    def do_POST(self) -> None:
        """Several are deleted at once."""
        keys = [each.text or "" for each in ET.fromstring(self._body()).iter() if each.tag.endswith("Key")]
        with self.store.lock:
            for key in keys:
                self.store.objects.pop(key, None)
        self._answer(200, b"<DeleteResult/>")

    @property
    def _key(self) -> str:
        return unquote(urlsplit(self.path).path).lstrip("/").partition("/")[2]

    def _copy(self, source: str) -> None:
        with self.store.lock:
            found = self.store.objects.get(source)
            if found is not None:
                self.store.objects[self._key] = Stored(found.body, found.meta)
        if found is None:
            return self._error(404, "NoSuchKey")
        tag = escape(found.headers["ETag"])
        return self._answer(200, f"<CopyObjectResult><ETag>{tag}</ETag></CopyObjectResult>".encode())

    def _body(self) -> bytes:
        """Without what Amazon's SDK puts around its parts to sign them."""
        sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get("x-amz-decoded-content-length") is None:
            return sent
        parts = b""
        while sent:
            head, _, rest = sent.partition(b"\r\n")
            size = int(head.partition(b";")[0], 16)
            if size == 0:
                break
            parts, sent = parts + rest[:size], rest[size + 2 :]
        return parts

    def _error(self, status: int, code: str) -> None:
        self._answer(status, f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode())

    def _answer(self, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, text in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def running() -> Iterator[tuple[Store, str]]:
    """The bucket `BUCKET`, and the URL it is at."""
    store = Store()
    handler = type("Handler", (_Handler,), {"store": store})
    server = ThreadingHTTPServer((HOST, 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield store, f"http://{HOST}:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def s3a(url: str) -> dict[str, str]:
    """Spark's settings for it."""
    return {
        f"spark.hadoop.fs.s3a.{name}": text
        for name, text in {
            "endpoint": url,
            "endpoint.region": "us-east-1",
            "path.style.access": "true",
            "access.key": "x",
            "secret.key": "x",
        }.items()
    }
