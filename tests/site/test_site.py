"""The pages as answers: their headers, the newcomer's two start pages, what is not there."""

from __future__ import annotations

import hashlib
import re
from importlib import resources

import pytest

from tests.support.service import Shop

PAGES = ("/", "/docs", "/docs/deprecation")
VENDORED = resources.files("petstore.site").joinpath("static", "swagger-ui")


class Test200:
    """What is there."""

    @pytest.mark.parametrize("path", PAGES)
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
        assert policy["base-uri"] == policy["form-action"] == "'none'"
        assert not re.search(r"https?:|\*|unsafe-eval", answer.headers["content-security-policy"])
        assert b"$" not in answer.body  # each placeholder of its template has been filled in

    async def test_a_newcomer_without_a_browser_gets_json(self, shop: Shop) -> None:
        """`curl` at the root is told where the interface, the reference and the contract are."""
        answer = await shop.call("GET", "/")
        assert answer.headers["content-type"] == "application/json"
        told = answer.json()
        assert told["interface"] == "/v1"
        for path in (told["reference"], told["openapi"]):
            assert (await shop.call("GET", path)).status == 200

    async def test_the_deprecation_notice_names_the_published_date(self, shop: Shop) -> None:
        """What the Link of getPet leads to says when the operation goes and what replaces it."""
        answer = await shop.call("GET", "/docs/deprecation")
        assert b"5 December 2030" in answer.body
        assert b"GET /v1/pets?id=7" in answer.body
        assert b"GET /v1/pets?status=available" in answer.body

    @pytest.mark.parametrize(
        ("name", "media_type"),
        [
            ("pages.css", "text/css; charset=utf-8"),
            ("icon.svg", "image/svg+xml"),
            ("reference.js", "text/javascript; charset=utf-8"),
            ("swagger-ui/swagger-ui-bundle.js", "text/javascript; charset=utf-8"),
        ],
    )
    async def test_a_static_file_has_its_media_type(self, shop: Shop, name: str, media_type: str) -> None:
        """A browser takes a script or a style sheet only under its own type."""
        answer = await shop.call("GET", f"/static/{name}")
        assert answer.status == 200
        assert answer.headers["content-type"] == media_type

    def test_the_vendored_files_are_those_whose_checksums_are_written_down(self) -> None:
        """Swagger UI is as it was published: every file has its checksum in the README, none is missing."""
        written = re.findall(r"^([0-9a-f]{64})  (\S+)$", VENDORED.joinpath("README.md").read_text(), re.M)
        assert {name for _, name in written} == {file.name for file in VENDORED.iterdir()} - {"README.md"}
        for checksum, name in written:
            assert hashlib.sha256(VENDORED.joinpath(name).read_bytes()).hexdigest() == checksum, name
