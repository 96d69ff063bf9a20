"""The pages of the documentation, in the order of reading."""

from __future__ import annotations

from typing import NamedTuple


class Page(NamedTuple):
    """A page at `path` below the site's root, by which a reader finds it in the navigation.

    `source` is a file of `documents/`, which has a title of its own, or of `templates/`, or the ending of a
    client's package, whose README.md it shows; without one, a module of its own answers. A `title` is given
    where it is not the label. `what` is a sentence for a reader who chooses among pages.
    """

    path: str
    label: str
    source: str = ""
    title: str = ""
    what: str = ""


STATUS = "status"
SECTIONS = (
    ("Learn", (
        Page("docs", "Overview", "docs.html", "Documentation"),
        Page("docs/quickstart", "Quickstart", "quickstart.md",
             what="From nothing to the first animal, then paging, limits and keys, in ten minutes."),
        Page("docs/guide", "Guide", "guide.md",
             what="Authentication, paging, retries, limits and bans, orders: how a program should behave."),
        Page("docs/clients", "Clients", "clients.html",
             what="For Python and TypeScript: they page, retry and wait as this service asks."),
        Page("docs/clients/python", "Python client", ".whl", "Python client",
             "All that the client for Python does: every call, followers of events, webhooks."),
        Page("docs/clients/typescript", "TypeScript client", ".tgz", "TypeScript client",
             "The same for Node.js, browsers and workers."),
        Page("docs/mcp", "MCP", "mcp.md", what="Tools for agents, made of the contract."),
    )),
    ("Look up", (
        Page("docs/reference", "Reference", "reference.html",
             what="Each operation with its parameters, bodies, answers and samples. Try it with your key."),
        Page("docs/events", "Events", "events.html",
             what="What changed since your last look: every type of event, with an example."),
        Page("docs/errors", "Errors", "errors.md",
             what="What each code means and what to do. Every error response links to its entry."),
        Page(STATUS, "Status", what="Whether the service is well, and how it answered today."),
    )),
    ("What changes", (
        Page("docs/changelog", "Changelog", "CHANGELOG.md",
             what="What each version adds, changes and corrects: contract, limits, clients."),
        Page("docs/deprecation", "Deprecated", "deprecation.html", "Deprecated: GET /pets/{petId}",
             "What is to be removed, when, and what to use instead."),
        Page("docs/changelog-operators", "For operators", "CHANGELOG.md",
             what="What each version adds, changes and corrects for those who run the service."),
    )),
)  # fmt: skip
PAGES = tuple(page for _, pages in SECTIONS for page in pages if page.source)
SEARCH = "docs/search"
START = Page("", "", "start.html", "Pet Store Service")
# The address of each document's page, the first if it has two.
DOCUMENTS = {page.source: page.path for page in reversed(PAGES) if page.source.endswith(".md")}
# Made for programs: each is a template.
FOR_PROGRAMS = ("llms.txt", "sitemap.xml", "docs/changelog.atom")
# Pages that are not documents: a document names them so, in code.
MADE = {f"/{page.path}": page.path for page in PAGES if page.source not in DOCUMENTS}
