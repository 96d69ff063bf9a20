"""Renders pages from templates, one at a time in a thread."""

from __future__ import annotations

import gc
import gzip
import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response

from petstore.console import formats
from petstore.core import customers
from petstore.core.negotiation import takes_gzip
from petstore.core.packaged import Resource
from petstore.core.pets import FIELDS
from petstore.web.slots import Slots

if TYPE_CHECKING:
    import jinja2

# The menu: address, title and least role of each page.
NAVIGATION = (
    ("Store", (
        ("", "Overview", "viewer"),
        ("pets", "Animals", "viewer"),
        ("orders", "Orders", "viewer"),
        ("stock", "Stock lists", "viewer"),
        ("categories", "Categories", "viewer"),
    )),
    ("Customers", (
        ("accounts", "Accounts", "viewer"),
        ("bans", "Bans", "viewer"),
        ("billing", "Billing", "operator"),
    )),
    ("Service", (
        ("journal", "Journal", "viewer"),
        ("events", "Events", "viewer"),
        ("service", "Service", "viewer"),
        ("people", "People", "operator"),
    )),
)  # fmt: skip
# The fields of an animal that pages show as they are, after name, category and status.
_PET_FIELDS = [field for field in FIELDS if field.name not in ("name", "category_id", "status")]
# Those with a column in lists.
_PET_COLUMNS = [field for field in _PET_FIELDS if not field.has_lines]
# Names and keys: a browser that translates the page leaves them as they are.
_AS_WRITTEN = re.compile("<(?:bdi|code)(?=[ >])")
_COMPRESSED_FROM_BYTES = 1_024
_GZIP_LEVEL = 5


def is_left(request: Request) -> bool:
    """Whether nobody waits for this page any more: its reader has closed it, or loads it once more."""
    return request.method != "POST" and bool(request.scope["has_left"]())


def answer_to_nobody() -> Response:
    return Response("The connection was closed before this page was made.", 400, media_type="text/plain")


class Page(Response):
    """A page, or a block of one. `fill` renders it."""

    def __init__(
        self, template: str, block: str, values: Mapping[str, Any], status: int, headers: Mapping[str, str]
    ) -> None:
        super().__init__(None, status, headers, "text/html")
        self.template = template
        self._block = block
        self._values = values

    def fill(self, environment: jinja2.Environment, *, compress: bool) -> None:
        """Render and compress, which takes milliseconds."""
        template = environment.get_template(self.template)
        if self._block:
            context = template.new_context(dict(self._values))
            body = "".join(template.blocks[self._block](context)).encode()
        else:
            body = template.render(self._values).encode()
        if compress and len(body) >= _COMPRESSED_FROM_BYTES:
            body = gzip.compress(body, _GZIP_LEVEL, mtime=0)
            self.headers["content-encoding"] = "gzip"
        self.body = body
        self.headers["content-length"] = str(len(body))


class Renderer:
    """`folder` has the templates; `static` returns a file's address without a leading slash.

    The first page imports the template engine: an unused console takes no memory. A template is compiled at
    its first use, in the thread too.
    """

    def __init__(
        self, folder: Resource, static: Callable[[str], str], slots: Slots, is_staging: bool
    ) -> None:
        self.slots = slots
        self._is_staging = is_staging
        self._folder = folder
        self._static = static

    async def finish(self, request: Request, response: Response) -> Response:
        """The response; a Page is rendered first, if its reader still waits for it."""
        if isinstance(response, Page):
            page, compress = response, takes_gzip(request.headers.getlist("accept-encoding"))

            def fill() -> None:
                if not is_left(request):
                    page.fill(self._environment, compress=compress)

            await self.slots.run(fill)
            if not page.body and is_left(request):
                return answer_to_nobody()
            # A template leaves hundreds of objects in cycles: 0.1 ms here. A hundred pages' objects would
            # cost any request 10 to 40 ms, since a process collects garbage seldom.
            gc.collect(0)
        return response

    @cached_property
    def _environment(self) -> jinja2.Environment:
        import jinja2

        environment = jinja2.Environment(
            loader=jinja2.DictLoader(self._sources),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.filters.update(formats.FILTERS)
        for name, of_page in formats.FILTERS_OF_PAGE.items():
            environment.filters[name] = jinja2.pass_context(of_page)
        environment.globals.update(
            static=self._static,
            navigation=NAVIGATION,
            pet_fields=_PET_FIELDS,
            pet_columns=_PET_COLUMNS,
            customer_fields=customers.FIELDS,
            pet_headings=["~" + "#" * field.is_amount + field.label for field in _PET_COLUMNS],
            is_staging=self._is_staging,
        )
        return environment

    @cached_property
    def _sources(self) -> dict[str, str]:
        return {
            each.name: _AS_WRITTEN.sub(r'\g<0> translate="no"', each.read_text())
            for each in self._folder.iterdir()
        }
