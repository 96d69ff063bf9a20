"""The store fails for real: 503 with every header, nothing half done, and all is well when it is back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any, TypeVar

import apsw
import pytest

from tests.support.clock import ManualClock
from tests.support.disk import mounted_disk
from tests.support.service import Answer, Shop, open_shop, outsider, settle

_T = TypeVar("_T")

REX = {"name": "Rex", "categoryId": 1}


@pytest.fixture
async def patient(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Shop]:
    """A shop that waits for somebody else's lock until that is released, and lets one write wait."""
    async with open_shop(tmp_path, clock, busy_timeout="60s", write_queue="1") as shop:
        yield shop


@pytest.fixture
async def impatient(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Shop]:
    """A shop that waits 20 milliseconds for somebody else's lock."""
    async with open_shop(tmp_path, clock, busy_timeout="20ms") as shop:
        yield shop


async def on_writer(shop: Shop, sql: str) -> Any:
    """Run a statement on the service's own writing connection."""
    return await shop.store.writer.submit(lambda connection: connection.execute(sql).get)


NOTHING_STORED = "The service can't use its store at the moment; nothing was stored. Try again shortly."
NOT_READ = "The service can't use its store at the moment. Try again shortly."


async def with_log(shop: Shop, path: Path, request: Awaitable[_T]) -> tuple[_T, str]:
    """The answer of a request, and what it left in the log, which is closed after it."""
    writer = shop.application.service.log_writer
    with path.open("w+b") as file:
        writer.descriptor = file.fileno()
        answer = await request
        writer.close()
        file.seek(0)
        return answer, file.read().decode()


def check_unavailable(answer: Answer) -> None:
    """503 `unavailable` with Retry-After; every other header is checked with each answer."""
    assert (answer.status, answer.code) == (503, "unavailable")
    assert answer.headers["retry-after"] == "1"


class TestWriteLockHeld503:
    """Somebody else writes for longer than we wait."""

    async def test_refused_and_then_accepted(self, impatient: Shop) -> None:
        """503 while the lock is held, 201 after; nothing of the first is there."""
        with outsider(impatient.path) as other:
            other.execute("BEGIN IMMEDIATE")
            answer = await impatient.post(REX)
            other.execute("ROLLBACK")
        check_unavailable(answer)
        assert "busy" in answer.json()["message"]
        assert impatient.pets() == []
        assert (await impatient.post(REX)).json()["id"] == 1

    async def test_reads_go_on(self, patient: Shop) -> None:
        """Lists and single animals are answered while a write waits; past PETSTORE_WRITE_QUEUE it is 503."""
        await patient.post(REX)
        with outsider(patient.path) as other:
            other.execute("BEGIN IMMEDIATE")
            writing = asyncio.create_task(patient.post(REX))
            await settle()
            assert (await patient.ask("GET", "/v1/pets")).status == 200
            assert (await patient.ask("GET", "/v1/pets/1")).status == 200
            assert "Too many writes" in (await patient.post(REX)).json()["message"]
            assert not writing.done()
            other.execute("ROLLBACK")
        assert (await writing).status == 201


async def test_identifiers_used_up(shop: Shop) -> None:
    """A creation after the identifier 2^63 - 1 is 503, as none is next and none is used again."""
    with outsider(shop.path) as other:
        other.execute(
            f"INSERT INTO pets (id, name, category_id, status) VALUES ({2**63 - 1}, 'x', 1, 'sold')"
        )
    check_unavailable(await shop.post(REX))
    last = await shop.ask("GET", "/v1/pets/9223372036854775807")
    assert last.json()["id"] == 2**63 - 1
    assert len(shop.pets()) == 1


async def test_a_store_that_may_not_be_written(shop: Shop, tmp_path: Path) -> None:
    """Creation is 503 and says that nothing was stored, and the log why, in our words; lists go on."""
    await on_writer(shop, "PRAGMA query_only = ON")
    answer, log = await with_log(shop, tmp_path / "log", shop.post(REX, [("x-request-id", "mine")]))
    check_unavailable(answer)
    assert answer.json()["message"] == NOTHING_STORED
    assert '"reason":"The store failed: the database is read-only; nothing was stored."' in log
    assert '"request_id":"mine"' in log
    assert (await shop.ask("GET", "/v1/pets")).status == 200


async def test_the_code_says_that_the_change_may_have_been_kept(tmp_path: Path, clock: ManualClock) -> None:
    """The disk fails while the change is made durable: 503 `outcome_unknown` for every change, with
    Retry-After."""
    with mounted_disk() as disk:
        async with open_shop(tmp_path, clock) as shop:
            await shop.post(REX)
            for method, target, body in (
                ("POST", "/v1/pets", REX),
                ("PATCH", "/v1/pets/1", {"status": "pending"}),
                ("DELETE", "/v1/pets/1", None),
            ):
                disk.fail("sync", suffix="-wal")
                answer = await shop.send(method, target, body)
                assert (answer.status, answer.code) == (503, "outcome_unknown")
                assert answer.headers["retry-after"] == "1"
                assert "whether this write was kept is unknown" in answer.json()["message"]
                disk.heal()
            assert (await shop.ask("GET", "/v1/pets")).json() == [REX | {"id": 1, "status": "available"}]


def break_table(shop: Shop, table: str) -> None:
    """Take a table away from under the service, as a half-done upgrade would."""
    with outsider(shop.path) as other:
        other.execute(f"ALTER TABLE {table} RENAME TO gone")


class TestUnreadable503:
    """What is asked for cannot be read."""

    @pytest.mark.parametrize("target", ["/v1/pets", "/v1/pets/1", "/v1/pets?id=1&status=sold"])
    async def test_an_animal_that_cannot_be_read_is_503(self, shop: Shop, target: str) -> None:
        """503 for GET and HEAD, without a word of the driver."""
        await shop.ask("GET", "/v1/pets?limit=3")
        break_table(shop, "pets")
        for method in ("GET", "HEAD"):
            answer = await shop.ask(method, target)
            assert answer.status == 503
            assert b"pets" not in answer.body.replace(b"/pets", b"")
        check_unavailable(await shop.ask("GET", target))

    async def test_a_key_that_cannot_be_read_lets_nobody_in(self, shop: Shop) -> None:
        """Nobody is let in, and nobody is told that the key is wrong."""
        key, _ = await shop.open_account("unseen")
        break_table(shop, "api_keys")
        answer = await shop.ask("GET", "/v1/pets", key=key)
        check_unavailable(answer)
        assert answer.headers["x-ratelimit-limit"] == "600"
        assert (await shop.call("GET", "/v1/pets")).status == 401
        assert (await shop.call("OPTIONS", "/v1/pets")).status == 204

    async def test_a_damaged_file(self, shop: Shop, tmp_path: Path) -> None:
        """Pages overwritten with garbage: 503, never 500, and the log says so; readyz says no."""
        for _ in range(30):
            await shop.post({"name": "n" * 255, "categoryId": 1})
        with outsider(shop.path) as other:
            assert other.execute("PRAGMA wal_checkpoint(TRUNCATE)").get[0] == 0
        size = shop.path.stat().st_size
        with shop.path.open("r+b") as file:
            file.seek(4_096)
            file.write(b"\xa5" * (size - 4_096))
        with outsider(shop.path) as other, pytest.raises(apsw.Error):
            other.execute("SELECT count(*) FROM pets").fetchall()
        with outsider(shop.path) as other:
            other.execute("PRAGMA user_version = 1")  # moves data_version, so that nothing kept is used
        answer, log = await with_log(shop, tmp_path / "log", shop.ask("GET", "/v1/pets"))
        check_unavailable(answer)
        assert answer.json()["message"] == NOT_READ
        assert "damaged" in log
        assert (await shop.ask("GET", "/healthz")).status == 200
        ready = await shop.ask("GET", "/readyz")
        assert ready.status == 503
        assert "damaged" in ready.json()["checks"]["store"]


class TestUnexpected500:
    """Something that nobody foresaw."""

    @pytest.fixture
    async def broken(self, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Shop:
        """A shop whose handlers meet a bug in the repository."""
        shop.expects_500 = True

        async def fail(*_: object) -> None:
            raise KeyError("secret detail /etc/passwd")

        for method in ("public_page", "look_up", "add"):
            monkeypatch.setattr(shop.store.pets, method, fail)
        return shop

    @pytest.mark.parametrize(
        ("method", "target"),
        [("GET", "/v1/pets"), ("HEAD", "/v1/pets"), ("GET", "/v1/pets/1"), ("POST", "/v1/pets")],
    )
    async def test_no_word_of_the_inside(
        self, broken: Shop, tmp_path: Path, method: str, target: str
    ) -> None:
        """The documented body and every header; the details are in the log, under the request id."""
        headers = [
            ("content-type", "application/json"),
            ("x-request-id", "mine"),
            ("authorization", f"Bearer {broken.key}"),
        ]
        answer, log = await with_log(
            broken,
            tmp_path / "log",
            broken.call(method, target, headers, b'{"name":"n","categoryId":1}'),
        )
        assert answer.status == 500
        assert b"secret" not in answer.body
        assert b"Error" not in answer.body
        if method != "HEAD":
            assert answer.code == "internal_error"
        assert "secret" not in str(answer.raw_headers)
        assert answer.headers["x-ratelimit-remaining"] == "999999"
        assert "secret detail" in log
        assert '"request_id":"mine"' in log
        assert broken.key not in log

    @pytest.mark.parametrize("method", ["GET", "POST"], ids=["at once", "in a task"])
    async def test_an_answer_that_fails_ends_the_connection(
        self, shop: Shop, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, method: str
    ) -> None:
        """The client does not wait for ever, and the log says what failed."""
        await shop.ask("GET", "/v1/pets")  # its key is known from here on

        def fail(*_: object) -> bytes:
            raise KeyError("what failed")

        monkeypatch.setattr("petstore.api.pipeline.app.limit_lines", fail)

        async def ask() -> None:
            with pytest.raises(ConnectionAbortedError):
                await shop.send(method, "/v1/pets", {"name": "n", "categoryId": 1})

        _, log = await with_log(shop, tmp_path / "log", ask())
        assert "what failed" in log
        assert shop.application.service.api.in_flight == 0
