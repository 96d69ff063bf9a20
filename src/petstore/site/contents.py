"""The pages of the documentation, in the order of reading."""

from __future__ import annotations

from typing import NamedTuple


class Page(NamedTuple):
    """A page at `path` below the site's root, by which a reader finds it in the navigation.

    `source` is a file of `documents/`, which has a title of its own, or of `templates/`, or the ending of a
    client's package, whose README.md it shows.
    """

    path: str
    label: str
    source: str
    title: str = ""


SECTIONS = (
    (
        "Learn",
        (
            Page("docs", "Overview", "docs.html", "Documentation"),
            Page("docs/quickstart", "Quickstart", "quickstart.md"),
            Page("docs/guide", "Guide", "guide.md"),
            Page("docs/clients", "Clients", "clients.html", "Clients"),
            Page("docs/clients/python", "Python client", ".whl", "Python client"),
            Page("docs/clients/typescript", "TypeScript client", ".tgz", "TypeScript client"),
        ),
    ),
    (
        "Look up",
        (
            Page("docs/reference", "Reference", "reference.html", "Reference"),
            Page("docs/events", "Events", "events.html", "Events"),
            Page("docs/errors", "Errors", "errors.md"),
        ),
    ),
    (
        "What changes",
        (
            Page("docs/changelog", "Changelog", "CHANGELOG.md"),
            Page("docs/deprecation", "Deprecated", "deprecation.html", "Deprecated: GET /pets/{petId}"),
        ),
    ),
)
PAGES = tuple(page for _, pages in SECTIONS for page in pages)
START = Page("", "", "start.html", "Pet Store Service")
# The address of each document's page.
DOCUMENTS = {page.source: page.path for page in PAGES if page.source.endswith(".md")}
# Pages that are no documents: a document names them so, in code.
MADE = {f"/{page.path}": page.path for page in PAGES if page.path not in DOCUMENTS.values()}
