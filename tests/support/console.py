"""A reader of the console without a browser: keeps cookies, reads forms, and sends them as one would."""

from __future__ import annotations

import posixpath
from functools import cached_property
from html.parser import HTMLParser
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import urlencode

from petstore.core.people import Role
from tests.support.journal import ACTOR
from tests.support.measuring import untraced
from tests.support.service import Answer, Pairs, Shop

HOST = "127.0.0.1:8080"
BROWSER = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8")


_TICKED = ("checkbox", "radio")


class Form:
    """A form of a page: where it goes, its fields with their values, and the text on its buttons."""

    def __init__(self, method: str, action: str) -> None:
        self.method = method
        self.action = action
        self.fields: dict[str, str] = {}
        self.choices: dict[str, list[str]] = {}
        self.buttons: list[str] = []


class _Reader(HTMLParser):
    """Collects the forms, links and text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self.links: dict[str, str] = {}
        self.words: list[str] = []
        self._form: Form | None = None
        self._select = self._link = ""
        self._in_button = self._in_textarea = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._form = Form(given.get("method", "get").upper(), given.get("action", ""))
            self.forms.append(self._form)
        elif tag == "a":
            self._link = given.get("href", "")
        elif self._form is not None:
            self._read_field(self._form, tag, given)

    def _read_field(self, form: Form, tag: str, given: dict[str, str]) -> None:
        name = given.get("name", "")
        if tag == "button":
            self._in_button = True
            form.buttons.append("")
        elif tag == "select":
            self._select = name
            form.choices[name] = []
        elif tag == "option" and self._select:  # of a datalist otherwise
            form.choices[self._select].append(given.get("value", ""))
            if "selected" in given or self._select not in form.fields:
                form.fields[self._select] = given.get("value", "")
        elif tag == "textarea":
            self._in_textarea, self._select = True, name
            form.fields[name] = ""
        elif tag == "input" and name:
            self._read_input(form, name, given)

    def _read_input(self, form: Form, name: str, given: dict[str, str]) -> None:
        value = given.get("value", "on" if given.get("type") == "checkbox" else "")
        if given.get("type") in _TICKED:
            form.choices.setdefault(name, []).append(value)
        if given.get("type") not in _TICKED or "checked" in given:
            form.fields[name] = value

    def handle_data(self, data: str) -> None:
        if self._form is not None and self._in_button:
            self._form.buttons[-1] += data.strip()
        if self._form is not None and self._in_textarea:
            self._form.fields[self._select] += data
        if self._link and data.strip():
            self.links.setdefault(" ".join(data.split()), self._link)
        self.words.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._form = None
        elif tag == "a":
            self._link = ""
        elif tag == "button":
            self._in_button = False
        elif tag == "select":
            self._select = ""
        elif tag == "textarea":
            self._in_textarea = False
            if self._form is not None:  # browsers drop a line feed after the tag
                self._form.fields[self._select] = self._form.fields[self._select].removeprefix("\n")


class Shown:
    """A page that was answered at an address."""

    def __init__(self, address: str, answer: Answer) -> None:
        self.address = address
        self.answer = answer
        self.status = answer.status
        self.headers = answer.headers
        self.body = answer.content

    @cached_property
    @untraced
    def _read(self) -> _Reader:
        reader = _Reader()
        if self.headers.get("content-type", "").startswith("text/html"):
            reader.feed(self.body.decode())
        return reader

    @property
    def forms(self) -> list[Form]:
        return self._read.forms

    @property
    def links(self) -> dict[str, str]:
        return self._read.links

    @cached_property
    def text(self) -> str:
        """What a person reads, in single spaces."""
        return " ".join("".join(self._read.words).split())

    def form(self, action: str) -> Form:
        """The form whose address ends like this."""
        (found,) = [form for form in self.forms if form.action.partition("?")[0].endswith(action)]
        return found


class Visitor:
    """Somebody at the console of a shop. Addresses are below /console: `pets/7`, `""` is the overview."""

    def __init__(self, shop: Shop, *, address: str = "127.0.0.1", scheme_headers: Pairs = ()) -> None:
        self.shop = shop
        self.cookies: dict[str, str] = {}
        self._address = address
        self._headers = scheme_headers

    async def sign_in_as(self, role: Role | str, name: str = "") -> Visitor:
        """A session for a new person of this role, without the pages."""
        store = self.shop.store
        link = await store.people.add(name or f"a-{role}", Role(role), ACTOR)
        token = await store.sign_ins.redeem(link.token, "no hash", self._address)
        self.cookies["petstore-session"] = token
        return self

    async def get(self, path: str = "", *, headers: Pairs = (), follow: bool = True) -> Shown:
        """A page, after redirections unless told otherwise."""
        address = f"/console/{path}" if path else "/console"
        return await self._ask("GET", address, headers, b"", follow=follow)

    async def post(
        self, path: str, fields: dict[str, Any], *, headers: Pairs = (), follow: bool = True
    ) -> Shown:
        """A form with just these fields."""
        sent = [("content-type", "application/x-www-form-urlencoded"), *headers]
        return await self._ask("POST", f"/console/{path}", sent, urlencode(fields).encode(), follow=follow)

    async def send_file(
        self,
        path: str,
        name: str,
        content: bytes,
        fields: dict[str, str],
        *,
        file: str | None,
        follow: bool = True,
    ) -> Shown:
        """A form with a file as its last field `name`, as browsers send it; `file` is the file's name."""
        parts = [
            f'name="{field}"\r\n\r\n{value}'.encode() for field, value in fields.items() if field != name
        ]
        if file is not None:
            kind = f'name="{name}"; filename="{file}"\r\nContent-Type: application/octet-stream'
            parts.append(f"{kind}\r\n\r\n".encode() + content)
        body = b"".join(b"--XX\r\nContent-Disposition: form-data; " + part + b"\r\n" for part in parts)
        sent = [("content-type", "multipart/form-data; boundary=XX")]
        return await self._ask("POST", f"/console/{path}", sent, body + b"--XX--\r\n", follow=follow)

    async def submit(self, shown: Shown, action: str, *, follow: bool = True, **values: Any) -> Shown:
        """Fill in and send a form of a page, with its hidden fields."""
        form = shown.form(action)
        unknown = set(values) - {*form.fields, *form.choices}
        assert not unknown, f"the form has no {unknown}"
        fields = {**form.fields, **{name: str(value) for name, value in values.items()}}
        target = posixpath.normpath(
            posixpath.join(posixpath.dirname(shown.address), form.action or shown.address)
        )
        if form.method == "GET":
            return await self._ask("GET", f"{target}?{urlencode(fields)}", (), b"", follow=follow)
        sent = [("content-type", "application/x-www-form-urlencoded")]
        return await self._ask("POST", target, sent, urlencode(fields).encode(), follow=follow)

    async def say_yes(self, shown: Shown, action: str, **values: Any) -> Shown:
        """Send a form that came back with a question, with its box ticked."""
        (sure,) = shown.form(action).choices["sure"]
        return await self.submit(shown, action, sure=sure, **values)

    async def fill(self, page: str, action: str, *, follow: bool = True, **values: Any) -> Shown:
        """Load a page, and fill in and send a form of it."""
        return await self.submit(await self.get(page), action, follow=follow, **values)

    async def _ask(self, method: str, target: str, headers: Pairs, body: bytes, *, follow: bool) -> Shown:
        cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        given = {name for name, _ in headers}
        usual = (BROWSER, ("cookie", cookies), ("host", HOST))
        sent = [pair for pair in usual if pair[0] not in given and pair[1]]
        answer = await self.shop.call(
            method, target, [*sent, *self._headers, *headers], body, client=self._address
        )
        self._keep_cookies(answer)
        where = answer.headers.get("location")
        if follow and answer.status in (303, 308) and where:
            path, question, query = where.partition("?")
            joined = posixpath.join(posixpath.dirname(target.partition("?")[0]), path)
            return await self._ask("GET", posixpath.normpath(joined) + question + query, (), b"", follow=True)
        return Shown(target.partition("?")[0], answer)

    def _keep_cookies(self, answer: Answer) -> None:
        for name, value in answer.raw_headers:
            if name != "set-cookie":
                continue
            for cookie in SimpleCookie(value).values():
                if cookie["max-age"] == "0" or not cookie.value:
                    self.cookies.pop(cookie.key, None)
                else:
                    self.cookies[cookie.key] = cookie.value
