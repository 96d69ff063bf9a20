"""Renders templates. Imported at the first visit, so that unused pages cost no memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import jinja2

from petstore.console import formats
from petstore.console.pet_forms import FURTHER
from petstore.core.packaged import Resource

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
        ("service", "Service", "viewer"),
        ("people", "People", "operator"),
    )),
)  # fmt: skip
_REFERENCE = re.compile(r'{% (?:extends|import|include) "([^"]+)"')


class TemplateRenderer:
    """`folder` has the templates; `static` returns a file's address without a leading slash."""

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
        self._environment.globals.update(static=static, navigation=NAVIGATION, pet_fields=FURTHER)
        self._sources = templates

    def prepare(self, template: str) -> None:
        """Compile a template and those that it extends and imports."""
        self._environment.get_template(template)
        for name in _REFERENCE.findall(self._sources[template]):
            self.prepare(name)

    def page(self, template: str, values: Mapping[str, Any]) -> str:
        return self._environment.get_template(template).render(values)

    def block(self, template: str, name: str, values: Mapping[str, Any]) -> str:
        found = self._environment.get_template(template)
        return "".join(found.blocks[name](found.new_context(dict(values))))
