"""The two parts of the changelog: sections called "Interface: ..." are for callers, others for operators."""

from __future__ import annotations

import re
from collections.abc import Iterator
from uuid import NAMESPACE_OID, uuid5

import msgspec

from petstore.site import documents

_INTERFACE = "Interface: "
_TITLES = {True: "Changelog", False: "Changelog for operators"}
_RELEASE = re.compile(r"^## (?P<heading>.+)\n(?P<text>(?:(?!## ).*\n?)*)", re.M)
_SECTION = re.compile(r"^### (?P<heading>.+)\n(?P<text>(?:(?!### ).*\n?)*)", re.M)
_ANCHOR = re.compile(r' <a class="anchor".*?</a>')
_RELEASED = re.compile(r"\[(?P<version>.+)\] - (?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})")


class Release(msgspec.Struct, frozen=True):
    """What a version changed in the interface, as HTML. `identifier` never changes (RFC 4287, 4.2.6)."""

    version: str
    date: str
    anchor: str
    identifier: str
    body: str


def part(text: str, *, is_interface: bool) -> str:
    """The changelog with the sections for callers, or with the others, as Markdown with a title."""
    kept = (f"## {heading}\n{changes}" for heading, changes in _changes(text, is_interface))
    return f"# {_TITLES[is_interface]}\n\n{''.join(kept)}"


def releases(text: str, root: str) -> list[Release]:
    """The versions that changed the interface, newest first. `root` is the site's address, with a slash."""
    found = []
    for heading, changes in _changes(text, True):
        if release := _RELEASED.fullmatch(heading):
            version = release["version"]
            body = _ANCHOR.sub("", documents.render(f"# {version}\n\n{changes}", root).body)
            identifier = uuid5(NAMESPACE_OID, f"petstore interface {version}").urn
            anchor = documents.anchor(heading)
            found.append(Release(version, release["date"], anchor, identifier, body))
    return found


def _changes(text: str, is_interface: bool) -> Iterator[tuple[str, str]]:
    """Each version's heading, and its sections of this kind. What stands before sections is for operators."""
    for release in _RELEASE.finditer(text):
        before = "" if is_interface else release["text"].partition("### ")[0]
        sections = (
            f"### {section['heading'].removeprefix(_INTERFACE).capitalize()}\n{section['text']}"
            for section in _SECTION.finditer(release["text"])
            if section["heading"].startswith(_INTERFACE) == is_interface
        )
        if changes := "".join(sections):
            yield release["heading"], before + changes
