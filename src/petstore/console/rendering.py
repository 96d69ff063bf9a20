"""Pages as text, from the templates. Imported at the first visit, so that unused pages cost no memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jinja2

from petstore.console import formats
from petstore.core.packaged import Resource

# What stands in the menu: address, name, and the least role that may read it.
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
        ("service", "Service", "viewer"),
        ("people", "People", "operator"),
    )),
)  # fmt: skip


class TemplateRenderer:
    """`folder` has the templates, `static` gives the address of a file without a slash in front."""

    def __init__(self, folder: Resource, static: Callable[[str], str]) -> None:
        templates = {each.name: each.read_text() for each in folder.iterdir()}
        self._environment = jinja2.Environment(
            loader=jinja2.DictLoader(templates),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters.update(formats.FILTERS)
        self._environment.globals.update(static=static, navigation=NAVIGATION)
        # Compiled here, in a thread, and not by the first request of each page on the event loop.
        self._templates = {name: self._environment.get_template(name) for name in templates}

    def page(self, template: str, values: Mapping[str, Any]) -> str:
        return self._templates[template].render(values)

    def block(self, template: str, name: str, values: Mapping[str, Any]) -> str:
        found = self._templates[template]
        return "".join(found.blocks[name](found.new_context(dict(values))))
