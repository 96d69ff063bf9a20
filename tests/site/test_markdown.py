"""Pages as Markdown: the same text and links, for programs and people who read no HTML."""

from __future__ import annotations

import re
from urllib.parse import unquote, urljoin, urlsplit

import pytest
from markdown_it import MarkdownIt

from petstore.site.contents import PAGES
from petstore.site.tree import content
from tests.support.cases import every_case
from tests.support.service import Shop

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATHS = [f"/{page.path}" for page in PAGES]


@pytest.fixture
def shop(lasting_shop: Shop) -> Shop:
    """Pages are the same for all tests: one service renders them."""
    return lasting_shop


async def _read(shop: Shop, path: str) -> str:
    answer = await shop.call("GET", path, [("accept", "text/html"), ("host", "petstore.example")])
    assert answer.status == 200, path
    return answer.body.decode()


def _words(html: str) -> list[str]:
    apart = re.sub(r"</(td|th|p|li|h[1-6]|div|summary|pre)>|<span>", r" \g<0>", html)
    return re.findall(r"\w+", content(apart).text())


def _as_html(markdown: str) -> str:
    return f"<main>{MarkdownIt('commonmark').enable('table').render(markdown)}</main>"


@every_case("path", PATHS)
async def test_it_says_what_the_page_says(shop: Shop, path: str) -> None:
    """Word for word, with the reader's own address, and as many headings of each level, blocks of code and
    rows of tables; no HTML is left."""
    page, markdown = await _read(shop, path), await _read(shop, f"{path}.md")
    made = _as_html(markdown)
    assert _words(made) == _words(page)
    assert "127.0.0.1:8080" not in markdown
    main = page.partition("<main")[2]
    for tag in ("h1", "h2", "h3", "tr"):
        assert made.count(f"<{tag}>") == len(re.findall(f"<{tag}[ >]", main)), tag
    assert made.count("<pre>") == main.count("<pre ")
    assert "```" not in made
    assert not re.search(r"^ *</?(div|span|section|details)", markdown, re.M)


@every_case("path", PATHS)
async def test_its_links_lead_somewhere(shop: Shop, path: str) -> None:
    """To the Markdown of other pages, and to anchors that their pages have."""
    for reference in re.findall(r'href="(.*?)"', _as_html(await _read(shop, f"{path}.md"))):
        target = urlsplit(urljoin(f"http://here{path}.md", reference))
        if target.netloc != "here":
            continue
        assert (await shop.call("GET", target.path)).status == 200, reference
        shown = target.path.removesuffix(".md")
        assert target.path.endswith(".md") or shown not in PATHS
        if target.fragment:
            assert f' id="{unquote(target.fragment)}"' in await _read(shop, shown), reference


@every_case("path", PATHS)
async def test_the_page_names_it(shop: Shop, path: str) -> None:
    """In its head, with the media type (RFC 7763) that it has."""
    reference = re.search(
        r'<link rel="alternate" type="text/markdown" href="(.*?)">', await _read(shop, path)
    )
    assert reference
    answer = await shop.call("GET", urljoin(path, reference[1]))
    assert answer.status == 200
    assert urljoin(path, reference[1]) == f"{path}.md"
    assert answer.headers["content-type"] == "text/markdown; charset=utf-8"
