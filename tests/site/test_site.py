"""Pages and documents as answers: their headers, the start pages, the contract, what is not there."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import product
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import pytest
import yaml

from tests.support.answers import check_error
from tests.support.cases import every_case
from tests.support.clock import ManualClock
from tests.support.measuring import untraced
from tests.support.service import Shop, open_shop

pytestmark = pytest.mark.asyncio(loop_scope="module")

PAGES = (
    "/", "/docs", "/docs/quickstart", "/docs/guide", "/docs/clients", "/docs/clients/python",
    "/docs/clients/typescript", "/docs/mcp", "/docs/reference", "/docs/events", "/docs/errors",
    "/docs/changelog", "/docs/deprecation", "/docs/changelog-operators", "/docs/search?q=retry", "/status",
)  # fmt: skip
DOCUMENTS = ["/openapi.json", "/openapi.yaml"]
FILES = ["/llms.txt", "/sitemap.xml", "/docs/changelog.atom", "/docs/guide.md"]
OPS = ["/healthz", "/readyz", "/metrics"]
HTML = [("accept", "text/html,application/xhtml+xml")]


@pytest.fixture
def shop(lasting_shop: Shop) -> Shop:
    """Pages are the same for all tests: one service renders them."""
    return lasting_shop


class _Anchors(HTMLParser):
    """The identifiers of a page, and what it refers to."""

    @untraced
    def __init__(self, text: str) -> None:
        super().__init__()
        self.identifiers: list[str] = []
        self.references: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id":
                self.identifiers.append(value or "")
            elif name in ("href", "src"):
                self.references.append(value or "")


async def test_every_link_leads_somewhere(shop: Shop) -> None:
    """Every link leads to a path that answers and an anchor that exists, also behind a proxy's prefix."""
    pages: dict[str, _Anchors] = {}

    async def look(path: str) -> _Anchors:
        if path not in pages:
            answer = await shop.call("GET", path, [("accept", "text/html")])
            assert answer.status == 200 or (path, answer.status) == ("/console", 303), path
            is_text = answer.headers.get("content-type", "").startswith("text/")
            pages[path] = _Anchors(answer.body.decode() if is_text else "")
        return pages[path]

    for path in PAGES:
        page = await look(path)
        assert len(set(page.identifiers)) == len(page.identifiers)
        for reference, prefix in product(page.references, ("", "/shop/petstore")):
            target = urlsplit(urljoin(f"http://here{prefix}{path}", reference))
            if target.netloc != "here":
                continue
            assert target.path.startswith(f"{prefix}/"), reference
            found = await look(target.path.removeprefix(prefix))
            assert not target.fragment or unquote(target.fragment) in found.identifiers, reference


class Test200:
    """What is there."""

    @every_case("path", PAGES)
    async def test_a_page_carries_the_strict_policy(self, shop: Shop, path: str) -> None:
        """Scripts from here only, nothing from another host, no frame around it, nothing evaluated."""
        answer = await shop.call("GET", path, [("accept", "text/html")])
        assert answer.status == 200
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        policy = dict(
            part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";")
        )
        assert policy["default-src"] == "'none'"
        assert policy["script-src"] == "'self'"
        assert policy["frame-ancestors"] == "'none'"
        assert policy["base-uri"] == "'none'"
        assert policy["form-action"] == "'self'"
        assert not re.search(r"https?:|\*|unsafe-eval", answer.headers["content-security-policy"])

    async def test_a_newcomer_without_a_browser_gets_json(self, shop: Shop) -> None:
        """`curl` at the root is told where the interface, the reference and the contract are."""
        answer = await shop.call("GET", "/")
        assert answer.headers["content-type"] == "application/json"
        told = answer.json()
        assert told["interface"] == "/v1"
        for path in (told["reference"], told["openapi"], told["documentation"]):
            assert (await shop.call("GET", path)).status == 200


async def test_the_start_page_for_browsers(shop: Shop) -> None:
    """A page with the way to the reference, the documents, the console and a first request."""
    answer = await shop.call("GET", "/", HTML)
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/html")
    text = answer.body.decode()
    targets = {urljoin("/", reference) for reference in re.findall('href="([^"#]+)"', text)}
    assert {"/docs/reference", "/openapi.json", "/openapi.yaml", "/docs/deprecation", "/console"} <= targets
    assert "/v1/pets" in text


async def test_a_console_that_is_not_served_is_not_named(tmp_path: Path, clock: ManualClock) -> None:
    """Nobody is led to what is not there."""
    async with open_shop(tmp_path, clock, console="off") as shop:
        answer = await shop.call("GET", "/", HTML)
    assert answer.status == 200
    assert b"console" not in answer.body


async def test_programs_find_every_page(shop: Shop) -> None:
    """llms.txt leads to the contract and to the Markdown of each page, the site map to each page."""
    host = [("host", "petstore.example")]
    listed = (await shop.call("GET", "/llms.txt", host)).body.decode()
    assert re.match(r"# .+\n\n> .+\n", listed)
    links = re.findall(r"^- \[.+\]\(http://petstore\.example(.+)\): .+$", listed, re.M)
    assert len(links) == len(re.findall("^- ", listed, re.M))
    pages = {f"{path}.md" for path in PAGES if path.startswith("/docs/") and "?" not in path}
    assert set(links) == {*DOCUMENTS, "/status", *pages}
    mapped = re.findall(
        "<loc>http://petstore.example(.*)</loc>", (await shop.call("GET", "/sitemap.xml", host)).body.decode()
    )
    assert set(mapped) == {path for path in PAGES if "?" not in path}
    for path in {*links, *mapped}:
        assert (await shop.call("GET", path)).status == 200


class TestFiles:
    """Scripts, styles, pictures, and the page on the deprecation."""

    async def test_static_files_outside_their_folder_are_not_served(self, shop: Shop) -> None:
        """No path leads up from there."""
        for path in (
            "/static/../pages.py",
            "/static/%2e%2e/pages.py",
            "/static//etc/passwd",
            "/static/nothing.css",
            "/static/",
            "/static/..",
        ):
            assert (await shop.call("GET", path)).status == 404

    async def test_the_deprecation_page(self, tmp_path: Path, clock: ManualClock) -> None:
        """It says when the operation goes, as configured, and what replaces it."""
        async with open_shop(tmp_path, clock, removal_date="2031-06-01") as shop:
            page = (await shop.call("GET", "/docs/deprecation")).body
        for said in (b"1 June 2031", b"GET /v1/pets?id=7", b"GET /v1/pets?status=available"):
            assert said in page


class TestDocuments:
    """The contract in both notations."""

    async def test_both_say_the_same(self, shop: Shop) -> None:
        """JSON and YAML are one document, which tools on other origins may read: it holds nothing secret."""
        as_json = await shop.call("GET", "/openapi.json")
        as_yaml = await shop.call("GET", "/openapi.yaml")
        assert as_json.headers["content-type"].startswith("application/json")
        assert as_yaml.headers["content-type"].startswith("application/yaml")
        assert as_json.json() == yaml.load(as_yaml.body, yaml.CSafeLoader)
        for answer in (as_json, as_yaml):
            assert answer.headers["access-control-allow-origin"] == "*"

    @pytest.mark.parametrize(
        ("settings", "url", "documentation"),
        [
            ({}, "http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/docs"),
            ({"host": "::1", "port": "81"}, "http://[::1]:81/v1", "http://[::1]:81/docs"),
            ({"host": "0.0.0.0"}, "/v1", None),
            ({"base_url": "https://a.example/shop/v1"}, "https://a.example/shop/v1", "https://a.example/shop/docs"),
        ],
        ids=["default", "ipv6", "wildcard", "prefix"],
    )  # fmt: skip
    async def test_the_document_has_the_addresses_of_the_service(
        self,
        tmp_path: Path,
        clock: ManualClock,
        settings: dict[str, str],
        url: str,
        documentation: str | None,
    ) -> None:
        """Absolute where the service can know them, as generated clients and linters need; else a path."""
        async with open_shop(tmp_path, clock, **settings) as shop:
            document = (await shop.call("GET", "/openapi.json")).json()
        assert [server["url"] for server in document["servers"]] == [url]
        assert document.get("externalDocs", {}).get("url") == documentation
        assert document["info"]["contact"].get("url") == documentation


_NOTHING = [
    "/nothing", "/doc", "/docs/x", "/openapi", "/openapi.yml", "/metrics/x", "/V1/pets", "/v2", "/.env", "//",
    "/.git/config", "/static", "/%2e%2e/etc/passwd", "/\xff", "/docs/x/", "/healthz/",
    "/openapi.json/",
]  # fmt: skip


class TestErrors:
    """The Error body outside /v1 too."""

    @every_case("path", _NOTHING)
    async def test_an_unknown_path_is_404_and_no_redirect(self, shop: Shop, path: str) -> None:
        """It may have a slash at its end."""
        answer = await shop.call("GET", path)
        assert (answer.status, answer.code) == (404, "not_found")
        check_error(answer)
        assert "location" not in answer.headers
        assert answer.headers["x-content-type-options"] == "nosniff"

    @every_case("path", [*PAGES, *DOCUMENTS, *FILES, *OPS])
    @every_case("method", ["POST", "PUT", "DELETE", "PATCH", "TRACE", "FOO"])
    async def test_a_page_or_a_document_cannot_be_written(self, shop: Shop, path: str, method: str) -> None:
        """They are read only: another method is 405."""
        answer = await shop.call(method, path)
        assert (answer.status, answer.code) == (405, "method_not_allowed")
        check_error(answer)
        assert answer.headers["allow"] == "GET, HEAD"

    @pytest.mark.parametrize("path", ["/docs/", "/console/", "/nothing/"])
    @pytest.mark.parametrize("accept", ["text/html", "*/*"])
    async def test_a_long_target(self, shop: Shop, path: str, accept: str) -> None:
        """8,193 bytes are 414 and repeated nowhere, in the path and in the query; 8,192 are looked at."""
        for begun, counted in ((f"{path}?", len(path)), (path, len(path))):
            fits = await shop.call("GET", begun + "/" * (8_192 - counted), [("accept", accept)])
            assert fits.status in (303, 308, 400, 401, 404)
            answer = await shop.call("GET", begun + "/" * (8_193 - counted), [("accept", accept)])
            assert (answer.status, answer.code) == (414, "uri_too_long")
            check_error(answer)
            assert len(answer.body) < 200

    @every_case("path", [*PAGES, *DOCUMENTS, *FILES, *OPS])
    async def test_head_has_the_headers_of_get_wherever_get_is(self, shop: Shop, path: str) -> None:
        """The HTTP server leaves the body out. No browser
        guesses what it is, and nothing says what runs here."""
        head, whole = await shop.call("HEAD", path), await shop.call("GET", path)
        assert head.status == 200
        assert head.headers["x-content-type-options"] == "nosniff"
        assert head.headers.keys() == whole.headers.keys()
        assert not {"server", "x-powered-by", "via"} & set(head.headers)

    async def test_a_page_needs_no_key_and_no_limit_counts_it(self, shop: Shop) -> None:
        """Documentation is for everybody; limits are the interface's."""
        key, _ = await shop.open_account("a", "free")
        for path in (*PAGES, *DOCUMENTS, *OPS):
            answer = await shop.ask("GET", path, key=key)
            assert answer.status == 200
            assert "x-ratelimit-limit" not in answer.headers
        assert (await shop.ask("GET", "/v1/pets", key=key)).headers["x-ratelimit-remaining"] == "59"
