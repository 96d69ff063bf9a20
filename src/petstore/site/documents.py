"""The Markdown documents of the repository as HTML.

Headings have the anchors that GitHub gives them, code is coloured. Links to documents that are served lead to
their pages, and so does the path of another page, in code; links to other files become plain text. A
paragraph of bold text alone names the language of the code below it: several such samples in a row are tabs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise

import msgspec
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup, escape
from pygments import highlight as colour
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from petstore.site.contents import DOCUMENTS, MADE

# Around a table, which scrolls: so it must be reachable by the keyboard.
TABLE, TABLE_END = '<div class="table" tabindex="0"><table>\n', "</table></div>\n"
_LOWEST_LISTED = 3
# A sample of several: its language, then code.
_SAMPLE = ["paragraph_open", "inline", "paragraph_close", "fence"]
_LANGUAGE = re.compile(r"\*\*[^*]+\*\*")


class Heading(msgspec.Struct, frozen=True):
    """A heading: its level from 1, and the anchor that leads to it."""

    level: int
    text: str
    anchor: str


class Document(msgspec.Struct, frozen=True):
    """`body` is everything below the title."""

    title: str
    body: Markup
    headings: list[Heading]

    def contents(self) -> list[Heading]:
        """The headings for a list of contents; without level 3 where headings repeat, as "Added" does."""
        listed = [heading for heading in self.headings if heading.level <= _LOWEST_LISTED]
        if len({heading.text for heading in listed}) == len(listed):
            return listed
        return [heading for heading in listed if heading.level < _LOWEST_LISTED]


def render(text: str, root: str) -> Document:
    """A document as HTML. `root` is the relative address of the site's root, with a slash at the end."""
    parser = MarkdownIt("commonmark").enable("table")
    parser.add_render_rule("fence", _show_code)
    parser.add_render_rule("heading_close", _close_heading)
    parser.add_render_rule("table_open", lambda *_: TABLE)
    parser.add_render_rule("table_close", lambda *_: TABLE_END)
    tokens = parser.parse(text)
    headings = list(_number(tokens))
    for token in tokens:
        if token.children:
            token.children = list(_linked(token.children, root))
    title = headings.pop(0)
    body = list(_tabbed(tokens[3:]))  # without the title's three tokens
    return Document(title.text, Markup(parser.renderer.render(body, parser.options, {})), headings)


def code_block(code: str, language: str) -> Markup:
    """A block of code. It can be reached by the keyboard, since it may scroll."""
    shown = Markup(highlight(code, language))
    return Markup('<pre tabindex="0"><code class="language-{}">{}</code></pre>\n').format(
        language or "text", shown
    )


def highlight(code: str, language: str) -> str:
    """Code as HTML with classes of Pygments; as it is where the language is unknown."""
    try:
        lexer = get_lexer_by_name(language or "text")
    except ClassNotFound:
        lexer = get_lexer_by_name("text")
    return str(colour(code, lexer, _formatter()))


@cache
def _formatter() -> HtmlFormatter[str]:
    """The one for all code: each takes 0.2 ms to make, the first a millisecond, which the start is spared."""
    return HtmlFormatter(nowrap=True)


def anchor(text: str) -> str:
    """The anchor of a heading, as GitHub makes it: what links in the repository name."""
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def _number(tokens: list[Token]) -> list[Heading]:
    """Gives each heading its anchor; one that repeats has a number after it, as GitHub does it."""
    found = []
    seen: Counter[str] = Counter()
    for opened, content in pairwise(tokens):
        if opened.type == "heading_open":
            text = "".join(child.content for child in content.children or [])
            name = anchor(text)
            own = f"{name}-{seen[name]}" if seen[name] else name
            seen[name] += 1
            opened.attrs["id"] = own
            found.append(Heading(int(opened.tag[1:]), text, own))
    return found


def _tabbed(tokens: Sequence[Token]) -> Iterator[Token]:
    """The tokens with samples that stand in a row as `tab` in one `tabs`."""
    at = 0
    while at < len(tokens):
        ends = [at]
        while (end := _end_of_sample(tokens, ends[-1])) > ends[-1]:
            ends.append(end)
        if len(ends) <= 2:
            yield tokens[at]
            at += 1
            continue
        yield _html('<div class="tabs">\n')
        for at, end in pairwise(ends):
            tokens[at].attrs["class"] = "language"
            yield from (_html('<div class="tab">\n'), *tokens[at:end], _html("</div>\n"))
        yield _html("</div>\n")
        at = ends[-1]


def _end_of_sample(tokens: Sequence[Token], at: int) -> int:
    """The end of the sample that begins at `at`; `at` itself if none does."""
    begun = [token.type for token in tokens[at : at + len(_SAMPLE)]] == _SAMPLE
    if not begun or not _LANGUAGE.fullmatch(tokens[at + 1].content):
        return at
    rest = range(at + len(_SAMPLE), len(tokens))
    return next((end for end in rest if tokens[end].type != "fence"), len(tokens))


def _html(text: str) -> Token:
    return Token("html_block", "", 0, content=text)


def _linked(tokens: list[Token], root: str) -> Iterator[Token]:
    """The parts of a paragraph with links that lead somewhere."""
    keeps = True
    for token in tokens:
        if token.type == "link_open":
            reference = _within_the_site(str(token.attrs["href"]), root)
            keeps = reference is not None
            token.attrs["href"] = reference or ""
        elif token.type == "code_inline" and token.content in MADE:
            yield Token("link_open", "a", 1, attrs={"href": root + MADE[token.content]})
            yield token
            token = Token("link_close", "a", -1)
        if keeps or not token.type.startswith("link_"):
            yield token


def _within_the_site(reference: str, root: str) -> str | None:
    """The reference as it is in the page; None for a file that is not served."""
    path, hash_sign, fragment = reference.partition("#")
    if not path or "://" in path:
        return reference
    page = DOCUMENTS.get(path.rpartition("/")[2])
    return f"{root}{page}{hash_sign}{fragment}" if page else None


def _show_code(_renderer: RendererHTML, tokens: Sequence[Token], index: int, *_others: object) -> str:
    language = tokens[index].info.strip().split(" ")[0]
    return code_block(tokens[index].content, language)


def _close_heading(_renderer: RendererHTML, tokens: Sequence[Token], index: int, *_others: object) -> str:
    # For the mouse alone: readers with a keyboard have the list of contents.
    reference = escape(tokens[index - 2].attrs["id"])
    link = f'<a class="anchor" href="#{reference}" aria-hidden="true" tabindex="-1">#</a>'
    return f" {link}</{tokens[index].tag}>\n"
