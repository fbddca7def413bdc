"""URLs of sinks that are of no use, and what is said of each; `secret` is never part of it."""

from __future__ import annotations

from typing import Final

REFUSED: Final = {
    "": "is not a SQLAlchemy URL",
    "secret": "is not a SQLAlchemy URL",
    "postgresql://u:secret@h:x/d": "is not a SQLAlchemy URL",
    "postgresql://u:secret@h:99999999999x/d": "is not a SQLAlchemy URL",
    "mysql://u:secret@h/d": "must be of sqlite or postgresql, not mysql",
    "sqlite://": "must name a file",
    "sqlite:///:memory:": "must name a file",
    "sqlite:///?timeout=5": "must name a file",
    "sqlite://secret/out.db": "has a host, and SQLite has none",
    "sqlite://u:secret@/out.db": "has a host, and SQLite has none",
    "sqlite:///a\0secret.db": "must not contain NUL",
    "sqlite:///o.db?timeout=secret": "an option timeout that is not a number of seconds",
    "sqlite:///o.db?timeout=nan": "an option timeout that is not a number of seconds",
    "sqlite:///o.db?timeout=1e300": "an option timeout that is not a number of seconds",
    "sqlite:///o.db?timeout=-1": "an option timeout that is not a number of seconds",
    "sqlite:///o.db?timeout=1&timeout=2": "has the option timeout twice",
    "sqlite:///o.db?cached_statements=secret": "an option cached_statements that is not a whole number",
    "sqlite:///o.db?cached_statements=-1": "an option cached_statements that is not a whole number",
    "sqlite:///o.db?cached_statements=99999999999999999999": "an option cached_statements that is not",
    "sqlite:///o.db?check_same_thread=secret": "an option check_same_thread that is not true or false",
    "sqlite:///o.db?mode=secret": "its options are cached_statements, check_same_thread, timeout, not mode",
    "sqlite:///o.db?%73ecr-et=1": "are cached_statements, check_same_thread, timeout, not another",
    "sqlite:///file:o.db?uri=true": "not uri",
    "postgresql://h/d?host=a:1&port=2&password=secret": "has options host and port of two kinds",
    "postgresql://h/d?host=a&host=b&port=1&password=secret": "has options host and port of two kinds",
    "postgresql://h/d?host=a:1,b:2": "has options host and port of two kinds",
    "postgresql://h/d?host=a,b&port=1": "has options host and port of different number",
    "postgresql://h/d?host=a&port=1,2": "has options host and port of different number",
    "postgresql://h/d?port=1,2": "has options host and port of different number",
    "postgresql://h/d?port=1&port=2": "has options host and port of different number",
    "postgresql://h/d?host=a&port=secret": "a port in its options that is not a number from 1 to 65535",
    "postgresql://h/d?host=a:1:2&host=b": "a port in its options that is not a number from 1 to 65535",
    "postgresql://h/d?host=a&port=70000": "a port in its options that is not a number from 1 to 65535",
    "postgresql://h/d?connect_timeout=secret": "an option connect_timeout that is not a whole number",
    "postgresql://h/d?connect_timeout=99999999999999999999": "an option connect_timeout that is not",
    "postgresql://h/d?connect_timeout=1&connect_timeout=2": "has the option connect_timeout twice",
    "postgresql://h/d?sslmode=a&sslmode=secret": "has the option sslmode twice",
    "postgresql://h/d?conninfo=password%3Dsecret": "has an option conninfo",
    "postgresql://h/d?password=secret%00": "must not contain NUL",
}
"""By what can be known without the database and its driver."""

UNOPENED: Final = (
    "postgresql://u:secret@127.0.0.1:1/d",
    "postgresql://u:secret@127.0.0.1:70000/d",
    "postgresql://u:secret@127.0.0.1:1/d?sslmode=wrong",
    "postgresql://u:secret@127.0.0.1:1/d?nonsense=wrong",
    "postgresql://u:secret@127.0.0.1:1/d?keepalives_idle=wrong",
    "postgresql://u:secret@127.0.0.1:1/d?prepare_threshold=wrong",
    "postgresql://u:secret@127.0.0.1:1/d?autocommit=wrong",
    "postgresql://u:secret@127.0.0.1:1/d?row_factory=wrong",
    "postgresql://u:secret@127.0.0.1:1/d?context=wrong",
    "postgresql://u:secret@127.0.0.1:1/d?client_encoding=secret&options='",
    "postgresql://u:secret%00@127.0.0.1:1/d",
    "postgresql://u%00:secret@127.0.0.1:1/d",
    "postgresql://u:secret@127.0.0.1:1/d?hostaddr=wrong",
    "postgresql://u:secret@/d?host=%2Fnowhere&sslpassword=secret",
    "postgresql://u:secret@/d?host=[::1]:5",
    "sqlite:////proc/nowhere/out.db",
    "sqlite:////proc/nowhere/%00.db?check_same_thread=f",
)
"""Found out by whoever connects, with one line."""

TAKEN: Final = (
    "sqlite:///out.db?timeout=2.5&check_same_thread=False&cached_statements=0",
    "sqlite:///${env:FOLDER}/out.db",
    "sqlite://${env:PLACE}",
    "sqlite:///out.db?timeout=${env:PATIENCE}",
    "${env:URL}",
    "postgresql://u:${env:PASSWORD}@h/d?host=a,b&port=1,2",
    "postgresql://u@/d?host=a,b&port=${env:PORTS}",
    "postgresql://u@/d?host=a:1&host=b:2",
    "postgresql://u@/d?host=a:1",
    "postgresql://u@/d?host=a&host=/run/pg",
    "postgresql://u@/d?host=/run/pg&port=5433",
    "postgresql://h/d?options=-csearch_path%3Dherd&options=-cwork_mem%3D8MB&connect_timeout=3",
)
"""Nothing is wrong with these, as far as can be known."""
