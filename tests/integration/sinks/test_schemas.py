"""PostgreSQL's schemas: where rows, staging and the fence are, however the URL or the table name them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
import sqlalchemy as sa

from definition.sinks.sql import SqlOptions
from worker.sinks.base import Field
from worker.sinks.database import connect, place
from worker.sinks.entrypoint_fence import Fence
from worker.sinks.errors import FencedError, SchemaError, SinkError
from worker.sinks.fence import Mark, Owner
from worker.sinks.sql import SqlSink

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    MakeSink = Callable[..., SqlSink]

pytestmark = pytest.mark.parametrize("url", ["postgresql"], indirect=True)
FENCES = "SELECT schemaname FROM pg_tables WHERE tablename = 'sparkherd_fence' ORDER BY schemaname"
TABLES = (
    "SELECT schemaname || '.' || tablename FROM pg_tables WHERE schemaname IN ('public', 'herd', 'other')"
)
ROWS = [("UA", 1.0)] * 9


def with_options(url: str, options: str, **more: str) -> str:
    """The URL with more of PostgreSQL's own parameters."""
    return str(sa.make_url(url).update_query_dict({"options": options, **more}))


@pytest.fixture(params=["inline", "staged"])
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, batch: Any) -> None:
    """Rows that pass through the driver, and rows that executors stage."""
    monkeypatch.setattr(batch, "collects", request.param == "inline")
    if request.param == "staged":
        monkeypatch.setattr("worker.sinks.sql.INLINE_ROWS", 0)


@pytest.fixture
def schemas(peek: Any) -> None:
    """Two, beside the one that PostgreSQL comes with."""
    peek.run("CREATE SCHEMA herd", "CREATE SCHEMA other")


@pytest.fixture
def writer(peek: Any, url: str) -> Iterator[str]:
    """The URL of a role that may create in its two schemas and nowhere else, as in PostgreSQL since 15."""
    role = f"writer_{sa.make_url(url).database}"
    peek.run(
        f"CREATE ROLE {role} LOGIN",
        f"GRANT CREATE, USAGE ON SCHEMA herd, other TO {role}",
    )
    yield str(sa.make_url(url).set(username=role, password=None))
    peek.run(f"DROP OWNED BY {role}", f"DROP ROLE {role}")


@pytest.mark.usefixtures("schemas", "size")
def test_a_table_in_a_schema(make_sink: MakeSink, batch: Any, peek: Any) -> None:
    """It is made there, written to, found again, and upserted into; none of its name is made elsewhere."""
    assert make_sink(1, table="herd.delays").write(batch(0, ROWS)).rows == 9
    assert make_sink(2, table="herd.delays").write(batch(1, ROWS)).total == 18
    upsert = {"table": "herd.newest", "mode": "upsert", "key": ("carrier",)}
    make_sink(1, task="u", **upsert).write(batch(0, ROWS))
    make_sink(2, task="u", **upsert).write(batch(1, ROWS))
    assert peek("SELECT count(*) FROM herd.delays") == [(18,)]
    assert peek("SELECT count(*) FROM herd.newest") == [(1,)]
    assert sorted(peek(TABLES)) == [("herd.delays",), ("herd.newest",), ("public.sparkherd_fence",)]


@pytest.mark.usefixtures("size")
def test_names_in_quotes(make_sink: MakeSink, batch: Any, peek: Any) -> None:
    """As in SQL, they may hold anything, a quote twice."""
    peek.run('CREATE SCHEMA "My ""Herd"".x"')
    make_sink(1, table='"My ""Herd"".x"."Delays of 2013"').write(batch(0, ROWS))
    make_sink(2, table='"My ""Herd"".x"."Delays of 2013"').write(batch(1, ROWS))
    assert peek('SELECT count(*) FROM "My ""Herd"".x"."Delays of 2013"') == [(18,)]
    assert peek.leftovers() == []


@pytest.mark.usefixtures("schemas")
def test_a_table_in_a_schema_is_checked_as_any(make_sink: MakeSink, peek: Any) -> None:
    """One of its name elsewhere says nothing; what is wrong is told with the whole name."""
    peek.run("CREATE TABLE public.delays (x int NOT NULL)", "CREATE TABLE herd.delays (carrier text)")
    with pytest.raises(SchemaError, match=r"^the table herd\.delays has no column delay"):
        make_sink(1, table="herd.delays")
    make_sink(1, table="other.delays")
    with pytest.raises(SchemaError, match=r"no unique index on carrier"):
        make_sink(1, table="other.delays", mode="upsert", key=("carrier",))


def test_a_schema_that_is_missing_is_named(make_sink: MakeSink, peek: Any) -> None:
    """Nobody makes one by a slip of the pen."""
    with pytest.raises(SchemaError, match=r"^sink\.options\.table names the schema hred, which the database"):
        make_sink(1, table="hred.delays")
    assert peek(TABLES) == [("public.sparkherd_fence",)]


@pytest.mark.usefixtures("schemas", "size")
def test_the_options_of_a_url_reach_every_session(
    make_sink: MakeSink, batch: Any, peek: Any, url: str
) -> None:
    """Also those of executors; sparkherd's own are set beside them, and the URL's count where both are."""
    there = with_options(url, "-c search_path=herd -c statement_timeout=54321")
    make_sink(1, url=there).write(batch(0, ROWS))
    assert sorted(peek(TABLES)) == [("herd.delays",), ("public.sparkherd_fence",)]
    engine = connect(with_options(there, "-c idle_in_transaction_session_timeout=7s"), Owner("g", "t", 1))
    with engine.connect() as connection:
        shown = connection.exec_driver_sql("SHOW idle_in_transaction_session_timeout").scalar()
    engine.dispose()
    assert shown == "7s"


WAYS = [
    ("", "herd.delays"),
    ("-c search_path=herd", "delays"),
    ("-c search_path=other,herd", "herd.delays"),
    ("-c search_path=other", "herd.delays"),
    ("-c search_path=herd,public", "delays"),
]


@pytest.mark.usefixtures("schemas")
@pytest.mark.parametrize("later", WAYS)
@pytest.mark.parametrize("former", WAYS)
def test_two_owners_meet_at_one_fence(
    *, former: Any, later: Any, make_sink: MakeSink, batch: Any, peek: Any, url: str
) -> None:
    """Whatever way each of them came to the table: a zombie must not find a fence row of its own."""
    zombie = make_sink(1, url=with_options(url, former[0]), table=former[1])
    zombie.write(batch(0, ROWS))
    owner = make_sink(2, url=with_options(url, later[0]), table=later[1])
    with pytest.raises(FencedError):
        zombie.write(batch(1, ROWS))
    assert owner.write(batch(1, ROWS)).total == 18
    assert peek("SELECT count(*) FROM herd.delays") == [(18,)]
    assert peek(FENCES) == [("public",)]


@pytest.mark.usefixtures("schemas", "size")
def test_a_role_that_may_create_in_one_schema_only(
    make_sink: MakeSink, batch: Any, peek: Any, writer: str
) -> None:
    """The fence is made beside its rows then, and stays where it was made when the rows go elsewhere."""
    former = make_sink(1, url=writer, table="herd.delays")
    former.write(batch(0, ROWS))
    owner = make_sink(2, url=with_options(writer, "-c search_path=other"), table="moved")
    with pytest.raises(FencedError):
        former.write(batch(1, ROWS))
    assert owner.write(batch(1, ROWS)).total == 18
    assert sorted(peek(TABLES)) == [("herd.delays",), ("herd.sparkherd_fence",), ("other.moved",)]


@pytest.mark.usefixtures("schemas")
def test_tasks_that_start_together_make_one_fence(peek: Any, writer: str) -> None:
    """Even if each has its rows in another schema."""
    start = threading.Barrier(6)
    failures: list[BaseException] = []

    def claim(task: int) -> None:
        sink = SqlSink(
            SqlOptions(url=writer, table=f"{('herd', 'other')[task % 2]}.delays"), Owner("g", f"t{task}", 1)
        )
        try:
            start.wait()
            sink.claim()
            sink.prepare([Field("carrier", "string")])
        except BaseException as error:  # noqa: BLE001 - whatever it is, the test shall see it
            failures.append(error)
        finally:
            sink.close()

    threads = [threading.Thread(target=claim, args=(task,)) for task in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    ((schema,),) = peek(FENCES)
    assert peek(f"SELECT count(*) FROM {schema}.sparkherd_fence") == [(6,)]


@pytest.mark.usefixtures("schemas")
def test_a_fence_that_somebody_made_for_the_role(
    make_sink: MakeSink, batch: Any, peek: Any, writer: str
) -> None:
    """Where the role finds tables by itself, it is used, though it could make one elsewhere."""
    make_sink(1, task="theirs")
    role = sa.make_url(writer).username
    peek.run(f"GRANT SELECT, INSERT, UPDATE ON public.sparkherd_fence TO {role}")
    make_sink(1, url=writer, table="herd.delays").write(batch(0, ROWS))
    assert peek(FENCES) == [("public",)]
    assert peek("SELECT count(*) FROM sparkherd_fence") == [(2,)]


@pytest.mark.usefixtures("schemas")
def test_another_role_s_fence_is_let_be(make_sink: MakeSink, peek: Any, writer: str) -> None:
    """Tenants have their own; an administrator's task does not end up in one of theirs."""
    make_sink(1, url=writer, table="herd.delays")
    make_sink(1, task="admin")
    assert peek(FENCES) == [("herd",), ("public",)]
    make_sink(2, url=writer, table="herd.delays")
    assert peek("SELECT task, token FROM herd.sparkherd_fence") == [("t", 2)]
    assert peek("SELECT task, token FROM public.sparkherd_fence") == [("admin", 1)]


@pytest.fixture
def guest(peek: Any, url: str) -> Iterator[str]:
    """The URL of a role that shares another's fence in `public`, and has a schema `app` of its own."""
    role = f"guest_{sa.make_url(url).database}"
    first = SqlSink(SqlOptions(url=url, table="delays"), Owner("g", "theirs", 1))
    first.claim()
    first.close()
    peek.run(
        f"CREATE ROLE {role} LOGIN",
        f"CREATE SCHEMA app AUTHORIZATION {role}",
        f"GRANT CREATE, USAGE ON SCHEMA herd TO {role}",
        f"GRANT SELECT, INSERT, UPDATE ON public.sparkherd_fence TO {role}",
    )
    yield str(sa.make_url(url).set(username=role, password=None))
    peek.run(f"DROP OWNED BY {role}", f"DROP ROLE {role}")


def guard_in(url: str, path: str, token: int = 1, task: str = "entry") -> None:
    """An entry point claims over a connection with a search path of its own."""
    there = sa.make_url(with_options(url, f"-c search_path={path}")).set(drivername="postgresql+psycopg")
    engine = sa.create_engine(there)
    owner = Owner("g", task, token)
    try:
        Fence(owner, lambda: None, lambda: Mark("c", 0), lambda _: None).claim(engine)
    finally:
        engine.dispose()


def copy_fence(peek: Any, role: str) -> None:
    """An administrator copies the fence, rows and all, and gives the role the copy."""
    peek.run(
        "CREATE TABLE app.sparkherd_fence (LIKE public.sparkherd_fence INCLUDING ALL)",
        "INSERT INTO app.sparkherd_fence SELECT * FROM public.sparkherd_fence",
        f"ALTER TABLE app.sparkherd_fence OWNER TO {role}",
    )


@pytest.mark.usefixtures("schemas")
@pytest.mark.parametrize("made_by", ["another's guard", "the task's guard", "copy", "shadow"])
def test_a_fence_that_is_made_later_moves_no_task(
    made_by: str, make_sink: MakeSink, batch: Any, peek: Any, guest: str
) -> None:
    """Whoever makes it, a zombie is refused, be it between batches or in its first, and the owner goes on."""
    role = str(sa.make_url(guest).username)
    zombie = make_sink(1, url=guest, table="herd.delays")
    zombie.write(batch(0, ROWS))
    early = make_sink(1, url=guest, table="herd.delays", task="early")
    if made_by == "shadow":  # by a search path that comes upon the new one first
        peek.run(f"ALTER ROLE {role} SET search_path = app, public")
    if made_by == "copy":
        copy_fence(peek, role)
    else:
        guard_in(guest, "app", task="t" if made_by == "the task's guard" else "entry")
    assert peek(FENCES) == [("app",), ("public",)]
    owner = make_sink(2, url=guest, table="herd.delays")
    heir = make_sink(2, url=guest, table="herd.delays", task="early")
    with pytest.raises(FencedError):
        zombie.write(batch(1, ROWS))
    with pytest.raises(FencedError):
        early.write(batch(0, ROWS))
    assert owner.write(batch(1, ROWS)).total == 18
    assert heir.write(batch(0, ROWS)).total == 9
    newest = owner.newest()
    assert newest is not None
    assert (newest.token, newest.rows) == (2, 18)


@pytest.mark.usefixtures("schemas")
def test_a_row_that_a_former_owner_meets_is_raised_wherever_it_is(
    make_sink: MakeSink, batch: Any, peek: Any, guest: str
) -> None:
    """A zombie that knows the copy is refused there, though the owner goes by the one that is further on."""
    role = str(sa.make_url(guest).username)
    make_sink(1, url=guest, table="herd.delays").write(batch(0, ROWS))
    copy_fence(peek, role)
    zombie = make_sink(2, url=guest, table="herd.delays")
    peek.run("UPDATE public.sparkherd_fence SET batch_id = 1, plan = NULL WHERE task = 't'")
    owner = make_sink(3, url=guest, table="herd.delays")
    with pytest.raises(FencedError):
        zombie.write(batch(1, ROWS))
    owner.write(batch(2, ROWS))


@pytest.mark.usefixtures("schemas")
def test_owners_that_choose_together_choose_one_fence(peek: Any, guest: str, open_sink: MakeSink) -> None:
    """Who has seen that there is no row yet does not go by that once another has left one."""
    with peek.begin() as other:
        sink = open_sink(1, url=guest, table="herd.delays")
        digest = Owner("g", "t", 1).digest
        other.exec_driver_sql(f"SELECT pg_advisory_xact_lock({int(digest, 16)})")
        claim = threading.Thread(target=sink.claim)
        claim.start()
        waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        while peek(waiting) == [(0,)]:
            assert claim.is_alive(), "it did not wait for the other owner"
        guard_in(guest, "app")
        other.exec_driver_sql(
            "INSERT INTO sparkherd_fence (group_id, task, token, resets, row_count)"
            " VALUES ('g', 't', 1, 0, 0)"
        )
        other.commit()
        claim.join()
    assert peek("SELECT task FROM public.sparkherd_fence ORDER BY task") == [("t",), ("theirs",)]
    assert peek("SELECT task FROM app.sparkherd_fence") == [("entry",)]


@pytest.mark.usefixtures("schemas")
def test_a_fence_that_is_made_later_moves_no_guard(peek: Any, guest: str) -> None:
    """One before it in the search path of the entry point, either."""
    guard_in(guest, "app,public", token=2)
    guard_in(guest, "app", task="other")
    with pytest.raises(FencedError):
        guard_in(guest, "app,public", token=1)
    assert peek("SELECT task FROM app.sparkherd_fence") == [("other",)]


@pytest.mark.usefixtures("schemas")
def test_guards_with_two_search_paths_are_two(guest: str) -> None:
    """One that writes to two schemas has a row in each: a batch in one says nothing of the other."""
    guard_in(guest, "app", token=2)
    guard_in(guest, "herd", token=1)


@pytest.mark.usefixtures("schemas")
def test_large_batches_into_a_table_that_others_made(
    make_sink: MakeSink, batch: Any, peek: Any, writer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the role may write but not create, they are staged where it may; the next claim finds that."""
    monkeypatch.setattr(batch, "collects", False)
    monkeypatch.setattr("worker.sinks.sql.INLINE_ROWS", 0)
    role = sa.make_url(writer).username
    peek.run(
        "CREATE SCHEMA given",
        "CREATE TABLE given.delays (carrier text, delay float8)",
        f"GRANT USAGE ON SCHEMA given TO {role}",
        f"GRANT INSERT, SELECT ON given.delays TO {role}",
    )
    make_sink(1, url=writer, table="herd.first", task="other")
    sink = make_sink(1, url=writer, table="given.delays")
    dying = batch(0, ROWS)
    seen = []
    dying.before_return = lambda: seen.extend(peek.leftovers())
    assert sink.write(dying).rows == 9
    assert len(seen) == 1
    assert peek("SELECT count(*) FROM given.delays") == [(9,)]


@pytest.mark.usefixtures("schemas")
def test_staging_is_swept_wherever_it_is(
    make_sink: MakeSink, batch: Any, peek: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when the next owner's rows go to another schema."""
    monkeypatch.setattr(batch, "collects", False)
    monkeypatch.setattr("worker.sinks.sql.INLINE_ROWS", 0)
    with monkeypatch.context() as patch:
        patch.setattr("worker.sinks.staging.Staging.clear", lambda _: None)
        make_sink(1, table="herd.delays").write(batch(0, ROWS))
    assert len(peek.leftovers()) == 1
    make_sink(2, table="other.delays")
    assert peek.leftovers() == []


@pytest.mark.usefixtures("schemas")
def test_an_entry_point_s_guard_is_where_its_connection_finds_it(peek: Any, url: str) -> None:
    """Its engine is its own affair, and so is the schema: there the fence is made and met again."""
    engine = sa.create_engine(
        with_options(url.replace("+psycopg", ""), "-c search_path=herd").replace(
            "postgresql:", "postgresql+psycopg:"
        )
    )
    former, later = (
        Fence(Owner("g", "t", token), lambda: None, lambda: Mark("c", 0, "p"), lambda _: None)
        for token in (1, 2)
    )
    with engine.begin() as connection:
        assert later.guard(connection)
    with engine.begin() as connection, pytest.raises(FencedError):
        former.guard(connection)
    engine.dispose()
    assert peek(FENCES) == [("herd",)]


def test_an_option_there_is_not_is_named(open_sink: MakeSink, url: str) -> None:
    """With the field, and without what is set to it."""
    with pytest.raises(SinkError, match=r'^sink\.options\.url: invalid connection option "sll"') as refused:
        open_sink(1, url=with_options(url, "", sll="hunter2"))
    assert "hunter2" not in str(refused.value)


def test_a_password_among_the_options_is_not_shown(url: str) -> None:
    """PostgreSQL takes one there, too; host and port may be there and are told."""
    engine = connect(with_options(url, "-c a.b=hunter2", password=quote("hunter2")), Owner("g", "t", 1))
    assert "hunter2" not in place(engine)
    assert str(sa.make_url(url).query["host"]).rpartition("/")[2] in place(engine)
    engine.dispose()
