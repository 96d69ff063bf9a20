"""Pages as text: templates over the documents and the contract. Commands do not import it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import jinja2

from petstore.core.packaged import Resource
from petstore.site import changelog, clients, documents, errors, events, reference
from petstore.site.contents import DOCUMENTS, FOR_PROGRAMS, PAGES, SEARCH, SECTIONS, START, STATUS, Page
from petstore.site.markdown import markdown
from petstore.site.search import Index
from petstore.site.sections import sections
from petstore.web.addresses import EXAMPLE

_PAGES = {page.path: page for page in (START, *PAGES)}
_ERRORS = {400: "Bad request", 404: "Page not found", 405: "Method not allowed"}
_CHANGELOG, _ERRORS_PAGE = "CHANGELOG.md", "errors.md"
_MARKDOWN = ".md"
# A key in documents, and what staging has there, as in static/pages.js.
_PLACEHOLDERS = ("pets_live_YourOwnKeyStandsHere", "pets_test_YourOwnKeyStandsHere")


class TemplateRenderer:
    """Renders pages with the example's base address, `http://127.0.0.1:8080/v1`, in them.

    `folder` has the templates and the documents, `contract` is the OpenAPI document, `address` names the
    static files. `values` are those of templates: `removal_date`, and
    whether the `console` is served and this `is_staging`.
    """

    def __init__(
        self, folder: Resource, contract: dict[str, Any], address: Callable[[str], str], **values: Any
    ) -> None:
        templates = {each.name: each.read_text() for each in folder.joinpath("templates").iterdir()}
        self._environment = jinja2.Environment(
            loader=jinja2.DictLoader(templates),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters["code"] = lambda text, language: documents.code_block(
            text.strip(), language
        )
        for name in ("layout.html", "notifications.html", "status.html"):  # rendered on the event loop
            self._environment.get_template(name)
        self._documents = folder.joinpath("documents")
        self._clients = folder.joinpath("clients")
        self._contract = contract
        self._pages: dict[str, str] = {}  # made once: a search needs them all
        self._values = {
            "static": address,
            "navigation": SECTIONS,
            "version": contract["info"]["version"],
            "query": "",
            "has_markdown": False,
            **values,
        }

    def page(self, path: str) -> str:
        """What stands at a path of contents.py, without a slash in front; a page with `.md` as Markdown."""
        if path not in self._pages:
            self._pages[path] = self._page(path)
        return self._pages[path]

    def _page(self, path: str) -> str:
        if path.endswith(_MARKDOWN):
            path = path.removesuffix(_MARKDOWN)
            return markdown(self.page(path), path, {page.path for page in PAGES})
        if path in FOR_PROGRAMS:
            return self._file(path)
        page = _PAGES[path]
        values = {**self._beside("../" * path.count("/") or "./"), "path": path, **_neighbours(path)}
        values["has_markdown"] = page in PAGES
        if page.source.endswith(".html"):
            return self._render(page.source, page.title or page.label, values | self._read(path))
        return self._document(page, values)

    def _read(self, path: str) -> dict[str, Any]:
        """What the template of a page shows that is made of the program."""
        if path == "docs/reference":
            return {"reference": reference.read(self._contract)}
        if path == "docs/events":
            groups = events.read()
            return {"groups": groups, "contents": events.contents(groups)}
        return {"clients": clients.read(self._clients)} if path == clients.FILES else {}

    def _document(self, page: Page, values: dict[str, Any]) -> str:
        text, template = self._markdown(page.source), "document.html"
        if page.source == _CHANGELOG:
            is_interface = DOCUMENTS[_CHANGELOG] == page.path
            text, template = changelog.part(text, is_interface=is_interface), "changelog.html"
            values |= {"is_interface": is_interface, "what": page.what}
        elif page.source == _ERRORS_PAGE:
            text = errors.with_index(text)
        document = documents.render(text, values["root"])
        values["contents"] = errors.contents(document.contents())
        return self._render(template, page.title or document.title, values, document=document)

    def _markdown(self, source: str) -> str:
        if source.endswith(".md"):
            return self._documents.joinpath(source).read_text()
        return clients.readme(source, self._clients)

    def _file(self, path: str) -> str:
        text = self._markdown(_CHANGELOG)
        return self._environment.get_template(path.rpartition("/")[2]).render(
            self._values, address=EXAMPLE, releases=changelog.releases(text, f"{EXAMPLE}/")
        )

    def search(self, query: str) -> str:
        """The page of what is found in all pages; the first call makes all pages."""
        values = {**self._beside("../"), "path": SEARCH, "query": query, "found": self._index.find(query)}
        return self._render("search.html", "Search", values)

    @cached_property
    def _index(self) -> Index:
        return Index(
            [each for page in PAGES for each in sections(self.page(page.path), page.path, page.label)]
        )

    def error(self, status: int, message: str, root: str) -> str:
        """The page of an error; `root` is where it says that the site begins."""
        title = _ERRORS.get(status, "Something went wrong")
        return self._render("error.html", title, self._beside(root), status=status, message=message)

    def switches(self, **values: Any) -> str:
        """The page of a contact: what notifications.py says of it."""
        return self._render("notifications.html", "Mail of the pet store", self._beside("../"), **values)

    def status(self, **values: Any) -> str:
        """The page of how well the service answers: what status.py says of it."""
        return self._render("status.html", "Status", {**self._beside("./"), "path": STATUS}, **values)

    def _beside(self, root: str) -> dict[str, Any]:
        """The values of a page that is not in the navigation."""
        return {**self._values, "path": None, "root": root, "contents": [], **_neighbours("")}

    def _render(self, template: str, title: str, values: dict[str, Any], **own: Any) -> str:
        text = self._environment.get_template(template).render(values, title=title, **own)
        return text.replace(*_PLACEHOLDERS) if values["is_staging"] else text


def _neighbours(path: str) -> dict[str, Page | None]:
    """The pages before and after one, in the order of reading."""
    at = next((number for number, page in enumerate(PAGES) if page.path == path), None)
    if at is None:
        return {"previous": None, "next": None}
    return {"previous": PAGES[at - 1] if at else None, "next": PAGES[at + 1] if at + 1 < len(PAGES) else None}
