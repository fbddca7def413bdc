"""The files that pages need beside themselves: all in the package, nothing from anywhere else."""

from __future__ import annotations

import hashlib
from importlib import resources
from typing import Final

from aiohttp import web

KINDS: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
FOR_EVER: Final = "public, max-age=31536000, immutable"


class Assets:
    """Read once. What is asked for with its digest may be kept for ever; scripts ask for others without."""

    def __init__(self) -> None:
        folder = resources.files("manager.console") / "assets"
        self._files = {each.name: each.read_bytes() for each in folder.iterdir() if _kind(each.name)}
        self._digests = {name: hashlib.sha256(body).hexdigest()[:12] for name, body in self._files.items()}

    def address(self, name: str) -> str:
        """Where a file is served."""
        return f"/assets/{name}?{self._digests[name]}"

    def answer(self, name: str, digest: str) -> web.Response:
        """A file; `digest` is what follows its name in the address.

        Raises:
            HTTPNotFound: there is none of that name.
        """
        if name not in self._files:
            raise web.HTTPNotFound
        return web.Response(
            body=self._files[name],
            content_type=_kind(name),
            charset="utf-8",
            headers={
                "Cache-Control": FOR_EVER if digest == self._digests[name] else "no-cache",
                "X-Content-Type-Options": "nosniff",
            },
        )


def _kind(name: str) -> str | None:
    return KINDS.get(name[name.rfind(".") :])
