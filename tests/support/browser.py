"""A real Chromium for tests of pages: what it shows, what it complains about, and what it fetched.

Without a Chromium these tests skip and say so; where CI is set they fail.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright

from tests.support.machine import absent
from tests.support.outside import node_module
from tools.servers.find import CHROMIUM, chromium

expect.set_options(timeout=30_000)  # as for what a page does; the default is short on a busy machine

DESKTOP: ViewportSize = {"width": 1_360, "height": 900}
PHONE: ViewportSize = {"width": 390, "height": 800}
NARROW: ViewportSize = {"width": 360, "height": 800}
NARROWEST: ViewportSize = {"width": 320, "height": 640}
ENLARGED: ViewportSize = {"width": 180, "height": 400}  # the narrow one at 200 %

_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# Runs before a page's own scripts: remembers what the Content-Security-Policy refused.
_WATCH_POLICY = """
window.refusedByPolicy = [];
document.addEventListener("securitypolicyviolation",
  (event) => window.refusedByPolicy.push(`${event.violatedDirective}: ${event.blockedURI}`));
"""
# axe's rules that a page in the other scheme or size can break where this one keeps them.
LOOKS = ("color-contrast", "link-in-text-block", "scrollable-region-focusable")
_UNFOLD = "() => document.querySelectorAll('details').forEach((details) => (details.open = true))"
# Keeps the first part of each list, and of lists that stand in the same kind of place, by names and classes,
# two of each shape: neighbours, and what an identifier that is there twice would show.
_THIN = """
() => {
  const name = (node) => `${node.localName}.${node.getAttribute("class") ?? ""}`;
  const look = (node) => [
    name(node), node.textContent.trim() !== "",
    [...node.attributes].map((attribute) => [attribute.name, attribute.value !== ""]),
  ];
  const shape = (node) => [look(node), [...node.children].map(shape)];
  const seen = {};
  for (const list of document.querySelectorAll("tbody, pre code, ul, p, .text, .shared")) {
    const place = [];
    for (let node = list; node; node = node.parentElement) place.push(name(node));
    for (const part of [...list.children].slice(1)) {
      const found = JSON.stringify([place, shape(part)]);
      seen[found] = (seen[found] ?? 0) + 1;
      if (seen[found] > 2) part.remove();
    }
  }
  const met = new Set();
  for (const section of document.querySelectorAll("section")) {
    const looks = [...section.querySelectorAll("*")].map((node) => {
      const place = [look(node)];
      for (let part = node; part !== section; part = part.parentElement) place.push(name(part));
      return JSON.stringify(place);
    });
    if (looks.every((each) => met.has(each))) section.remove();
    looks.forEach((each) => met.add(each));
  }
}
"""
_VIOLATIONS = """
async (only) => (await axe.run({resultTypes: ["violations"], ...only})).violations.flatMap((rule) =>
  rule.nodes.map((node) => `${rule.id} (${rule.impact}): ${node.html.slice(0, 120)}`))
"""


@contextmanager
def running_browser() -> Iterator[Browser]:
    """A Chromium. Start servers before it: from then on this thread has an event loop, and `asyncio.run`
    refuses."""
    program = chromium() or absent(f"browser ({', '.join(CHROMIUM)})")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=_ARGUMENTS)
        yield started
        started.close()


# What htmx says of a request that is cut off when its page is left. A faulty answer is a complaint by itself.
_CUT_OFF = ("htmx:afterRequest", "htmx:sendAbort", "htmx:sendError")


class WatchedPage:
    """A page, and everything that it must not do: complain, meet its policy, ask another host.

    `base_url` is where `open` goes, `hosts` are others that may be asked. Answers from 400 are complaints,
    unless `is_expected` says otherwise.
    """

    def __init__(self, page: Page, base_url: str, *hosts: str) -> None:
        self.page = page
        self.base_url = base_url
        self.complaints: list[str] = []
        self._own = (*(f"{host}/" for host in (base_url, *hosts)), "data:")
        page.add_init_script(_WATCH_POLICY)
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.complaints.append(f"script: {error}"))
        page.on("request", self._asked)
        page.on("response", self._answered)

    def is_expected(self, status: int, url: str) -> bool:
        """Whether an answer of this status is no complaint: one of the interface, which a form shows."""
        return "/v1/" in url

    def _heard(self, message: Any) -> None:
        if message.type == "error" and not message.text.startswith(_CUT_OFF):
            self.complaints.append(f"console: {message.text}")

    def _asked(self, request: Any) -> None:
        if not request.url.startswith(self._own):
            self.complaints.append(f"other host: {request.url}")

    def _answered(self, response: Any) -> None:
        if response.status >= 400 and not self.is_expected(response.status, response.url):
            self.complaints.append(f"{response.status}: {response.url}")

    def open(self, path: str) -> Page:
        """Go there and wait until everything of the page is loaded."""
        self.page.goto(self.base_url + path, wait_until="load")
        return self.page

    def faults(self) -> list[str]:
        """Everything that went wrong on this page so far."""
        return self.complaints + list(self.page.evaluate("window.refusedByPolicy"))


def unfold(page: Page) -> None:
    """Open all that is folded."""
    page.evaluate(_UNFOLD)


def thin(page: Page) -> None:
    """Leave two of all rows of tables, parts of lists and texts, and words of samples, that differ in their
    text alone; and no section that has nothing but what sections before it have in the same places.

    axe looks at each: this takes most of its time, and none of what it can find.
    """
    page.evaluate(_THIN)


@cache
def _axe() -> str:
    return (node_module("axe-core") / "axe.min.js").read_text()


def violations(page: Page, rules: Sequence[str] = ()) -> list[str]:
    """What axe complains about, of any severity, on the page as it is shown now; `rules`: by these alone."""
    if not page.evaluate("'axe' in window"):
        # Half a megabyte: `evaluate` takes twice the time.
        page.context.new_cdp_session(page).send("Runtime.evaluate", {"expression": _axe()})
    return list(page.evaluate(_VIOLATIONS, {"runOnly": rules} if rules else {}))


def fits(page: Page) -> bool:
    """Whether nothing scrolls sideways in the page's current width."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


# Chromium asks for the icon when it likes, and headless-shell never: the page asks for it in its place.
_ASK_FOR_ICON = "async () => (await fetch(document.querySelector('link[rel=icon]').href)).arrayBuffer()"
_LOOK_AGAIN_MS = 10
_LOOKS = 2_000


class Weight(NamedTuple):
    """What a view cost over the network, headers included, and the requests that led to it."""

    size_bytes: int
    requests: int


def weigh(page: Page, address: str, *, first: bool = False) -> Weight:
    """Open an address and count what does not come from the browser's own cache, the icon included.

    `first`: as a browser that has been nowhere yet.
    """
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    session.send("Network.setCacheDisabled", {"cacheDisabled": first})
    asked: set[str] = set()
    sizes: dict[str, int] = {}

    def begun(event: dict[str, Any]) -> None:
        if event["type"] != "Other":  # the icon, when the browser itself asks
            asked.add(event["requestId"])

    def finished(event: dict[str, Any]) -> None:
        sizes[event["requestId"]] = event["encodedDataLength"]

    session.on("Network.requestWillBeSent", begun)
    session.on("Network.loadingFinished", finished)
    page.goto(address, wait_until="load")
    page.evaluate(_ASK_FOR_ICON)
    for _ in range(_LOOKS):  # events may come after what they tell of
        if asked <= sizes.keys():
            break
        page.wait_for_timeout(_LOOK_AGAIN_MS)
    else:
        raise AssertionError(f"not everything of {address} was loaded")
    session.detach()
    sent = [sizes[request] for request in asked if sizes[request] > 0]
    return Weight(int(sum(sent)), len(sent))
