"""Pages in gzip (RFC 9110, 8.4.1 and 12.5.3): who gets them, and their tags. From when on: test_cache.py."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.api.test_orders import add_pets, place
from tests.support.cases import every_case
from tests.support.contract import table
from tests.support.service import Answer, Pairs, Shop, open_shop

pytestmark = pytest.mark.asyncio(loop_scope="module")

GZIP: Pairs = [("accept-encoding", "gzip")]
CACHED = ["/v1/pets?limit=100", "/v1/categories"]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def full(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Shop]:
    """Each kind of list is longer than 1 KiB. What a test changes there hinders no other."""
    async with open_shop(tmp_path_factory.mktemp("shop")) as shop:
        await add_pets(shop, 30)
        for number in range(1, 31):
            await place(shop, number)
            await shop.store.categories.name(number, f"A category of animals, number {number}", "staff")
        yield shop


async def third(shop: Shop, target: str, headers: Pairs = GZIP) -> Answer:
    """The answer from which on a page is in gzip."""
    for _ in range(2):
        await shop.ask("GET", target, headers)
    return await shop.ask("GET", target, headers)


@every_case("target", CACHED)
@every_case(
    ("lines", "taken"),
    [
        (["gzip"], True), (["br, gzip;q=0.1"], True), (["*"], True), (["br", "gzip"], True),
        ([], False), ([""], False), (["gzip;q=0"], False), (["gzip;q=0.0, *"], False),
        (["br"], False), (["*", "gzip;q=0"], False), (["identity, gzip;q=0.5"], False),
    ],
)  # fmt: skip
async def test_who_gets_it(full: Shop, target: str, lines: list[str], taken: bool) -> None:
    """Who takes it and does not prefer the plain bytes, from the third time on: the same content, under
    another strong tag. Who refuses it never does, however often others ask. Vary is always there."""
    plain = await third(full, target, [])
    await third(full, target)
    answer = await full.ask("GET", target, [("accept-encoding", line) for line in lines])
    assert ("content-encoding" in answer.headers) is taken
    assert (answer.body != plain.body) is (answer.headers["etag"] != plain.headers["etag"]) is taken
    assert answer.content == plain.body
    assert answer.headers["vary"] == plain.headers["vary"] == "Accept-Encoding"
    assert not answer.headers["etag"].startswith("W/")
    if taken:
        assert len(answer.body) < len(plain.body) / 2


@pytest.mark.parametrize("target", CACHED)
async def test_head_has_the_headers_of_the_compressed_get(full: Shop, target: str) -> None:
    """The headers of the GET, with the length of the compressed body."""
    whole, head = await third(full, target), await full.ask("HEAD", target, GZIP)
    names = ("content-encoding", "content-length", "etag", "vary")
    assert [head.headers[name] for name in names] == [whole.headers[name] for name in names]
    assert (head.body, head.headers["content-encoding"]) == (b"", "gzip")


@pytest.mark.parametrize("target", CACHED)
@pytest.mark.parametrize("accepted", [GZIP, []])
async def test_304_by_the_tag_of_either_coding(full: Shop, target: str, accepted: Pairs) -> None:
    """Whatever the client takes now, also right after a restart: it has the page, and keeps its tag."""
    tags = [(await third(full, target, headers)).headers["etag"] for headers in ([], GZIP)]
    assert tags[0] != tags[1]
    for _ in range(2):
        for tag in (*tags, *(f"W/{tag}" for tag in tags)):
            answer = await full.ask("GET", target, [*accepted, ("if-none-match", tag)])
            assert (answer.status, answer.headers["etag"]) == (304, tag.removeprefix("W/"))
            assert answer.headers["vary"] == "Accept-Encoding"
        await full.restart()


async def test_it_follows_every_change(full: Shop) -> None:
    """A change drops it with its page; neither of its former tags is known any more."""
    for number in range(2):
        whole = await third(full, CACHED[0])
        await full.patch(1, {"name": f"n{number}"})
        answer = await full.ask("GET", CACHED[0], [*GZIP, ("if-none-match", whole.headers["etag"])])
        assert (answer.status, answer.json()[0]["name"]) == (200, f"n{number}")
    assert (await third(full, CACHED[0])).json()[0]["name"] == "n1"


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
async def test_if_match_takes_the_tag_in_gzip(full: Shop, method: str) -> None:
    """If-Match takes the tag that a compressed answer had; a weak one is not a match, and the message says
    so."""
    created = (await full.post({"name": "\U0001f408" * 255, "categoryId": 1})).json()["id"]
    target, listed = f"/v1/pets/{created}", f"/v1/pets?id={created}"
    read = await third(full, listed)
    tag = read.headers["etag"]
    assert read.headers["content-encoding"] == "gzip"
    assert tag != (await full.ask("GET", listed)).headers["etag"]
    document = {"categoryId": 2} if method == "PATCH" else None
    for sent, status in ((f"W/{tag}", 412), (tag[:-1] + 'x"', 412), (f'"a", {tag}', 200), (tag, 412)):
        if method == "DELETE" and status == 200:
            assert (await full.send(method, target, document, [("if-match", sent)])).status == 204
            break
        answer = await full.send(method, target, document, [("if-match", sent)])
        assert answer.status == status
        assert ("without W/" in str(answer.json())) is sent.startswith("W/")


async def test_nothing_else_is_compressed(full: Shop) -> None:
    """What is an account's own stays plain, however long it is: no secret is guessed by its length."""
    hook = {"url": "https://shop.example/" + "x" * 1_024}
    created = (await full.send("POST", "/v1/webhooks", hook)).json()["id"]
    rows = [row for row in table() if row.method == "GET" and row.path is not None]
    targets = [str(row.path).replace("{petId}", "1").replace("{webhookId}", str(created)) for row in rows]
    assert set(targets) > {target.partition("?")[0] for target in CACHED}
    for target in [*targets, "/v1/store/orders?limit=100", "/v1/events?limit=100", "/v1/pets?page=2"]:
        for _ in range(3):
            answer = await full.ask("GET", target, GZIP)
        is_cached = target in ("/v1/pets", "/v1/categories")
        assert answer.headers.get("content-encoding") == ("gzip" if is_cached else None), target
        assert ("vary" in answer.headers) is is_cached
