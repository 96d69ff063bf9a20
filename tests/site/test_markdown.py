"""Pages as Markdown: the same text and links, for programs and people who read no HTML."""

from __future__ import annotations

import re
from urllib.parse import unquote, urljoin, urlsplit

import pytest
import pytest_asyncio
from markdown_it import MarkdownIt

from petstore.site.contents import PAGES
from petstore.site.tree import content
from tests.support.cases import every_case
from tests.support.service import Shop

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATHS = [f"/{page.path}" for page in PAGES]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def texts(lasting_shop: Shop) -> dict[str, str]:
    """Each page, and its Markdown, by their paths."""
    read = {}
    for path in (*PATHS, *(f"{path}.md" for path in PATHS)):
        answer = await lasting_shop.call("GET", path, [("accept", "text/html"), ("host", "petstore.example")])
        assert answer.status == 200, path
        assert not path.endswith(".md") or answer.headers["content-type"] == "text/markdown; charset=utf-8"
        read[path] = answer.body.decode()
    return read


def _words(html: str) -> list[str]:
    apart = re.sub(r"</(td|th|p|li|h[1-6]|div|summary|pre)>|<span>", r" \g<0>", html)
    return re.findall(r"\w+", content(apart).text())


def _as_html(markdown: str) -> str:
    return f"<main>{MarkdownIt('commonmark').enable('table').render(markdown)}</main>"


@every_case("path", PATHS)
async def test_it_says_what_the_page_says(lasting_shop: Shop, texts: dict[str, str], path: str) -> None:
    """Word for word, with the reader's own address, and as many headings of each level, blocks of code and
    rows of tables; no HTML is left. Its links lead to the Markdown of other pages, and to anchors that their
    pages have. The page names it in its head, with its media type (RFC 7763)."""
    page, markdown = texts[path], texts[f"{path}.md"]
    made, main = _as_html(markdown), page.partition("<main")[2]
    assert _words(made) == _words(page)
    assert "127.0.0.1:8080" not in markdown
    for tag in ("h1", "h2", "h3", "tr"):
        assert made.count(f"<{tag}>") == len(re.findall(f"<{tag}[ >]", main)), tag
    assert made.count("<pre>") == main.count("<pre ")
    assert "```" not in made
    assert not re.search(r"^ *</?(div|span|section|details)", markdown, re.M)
    for reference in re.findall(r'href="(.*?)"', made):
        target = urlsplit(urljoin(f"http://here{path}.md", reference))
        if target.netloc != "here":
            continue
        if target.path not in texts:
            assert (await lasting_shop.call("GET", target.path)).status == 200, reference
        shown = target.path.removesuffix(".md")
        assert target.path.endswith(".md") or shown not in PATHS
        assert not target.fragment or f' id="{unquote(target.fragment)}"' in texts[shown], reference
    (named,) = re.findall(r'<link rel="alternate" type="text/markdown" href="(.*?)">', page)
    assert urljoin(path, named) == f"{path}.md"
