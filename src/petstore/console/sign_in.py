"""Signing in and out: the sign-in page, one-time links, and the end of a session."""

from __future__ import annotations

import re
from collections.abc import Mapping

import structlog
from starlette.responses import Response

from petstore.console.connections import Connections
from petstore.console.cookies import Cookies
from petstore.console.passwords import Passwords
from petstore.console.visit import View, Visit, with_retry_after
from petstore.core.errors import Forbidden, Invalid, TooManyTries
from petstore.core.passwords import PASSWORD_MIN_CHARACTERS, check_password
from petstore.core.people import Role, SignInLink
from petstore.core.sign_ins import Attempt
from petstore.transactions.sign_ins import SignIns

_log = structlog.get_logger("petstore.console")
# A page of the console; never another site.
_NEXT = re.compile(
    r"(?![^?]*\.\.)[A-Za-z0-9_-][A-Za-z0-9/._-]{0,199}(\?[A-Za-z0-9=&%+._~*/-]{0,1000})?", re.ASCII
)
_NEEDS_TLS = (
    "A password can't be sent to this address: without TLS others on the network could read it. Use the"
    " service's https address. Behind a proxy, an operator adds it to PETSTORE_TRUSTED_PROXIES and lets it"
    " send X-Forwarded-Proto."
)


class Authenticator:
    """Checks passwords within their budgets, and starts sessions."""

    def __init__(
        self, sign_ins: SignIns, passwords: Passwords, cookies: Cookies, connections: Connections
    ) -> None:
        self.sign_ins = sign_ins
        self.passwords = passwords
        self.cookies = cookies
        self._connections = connections

    def address(self, visit: Visit) -> str:
        return self._connections.address(visit.request)

    def check_secrets(self, visit: Visit) -> None:
        """Raise Forbidden if a password would cross the network without TLS."""
        if not self._connections.takes_secrets(visit.request):
            raise Forbidden(_NEEDS_TLS)

    async def try_password(self, visit: Visit, name: str, password: str) -> Attempt | None:
        """The attempt if the password is right, else None. Raises TooManyTries before any hash."""
        try:
            attempt = await self.sign_ins.take_try(name, self.address(visit))
        except TooManyTries:
            _log.warning("sign-in refused", reason="too many tries")
            raise
        if await self.passwords.verify(attempt.stored, password):
            return attempt
        known = attempt.person.name if attempt.person is not None else None
        _log.warning("sign-in refused", reason="wrong name or password", person=known)
        return None

    async def start_session(self, visit: Visit, response: Response, token: str) -> Response:
        """Add the cookie of a new session to the response. End the browser's earlier session."""
        if visit.may(Role.VIEWER):
            await self.sign_ins.end_session_of(visit.secret)
        self.cookies.keep_session(visit.request, response, token)
        return response


class SignInPages:
    """The pages that need no session."""

    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator = authenticator

    def views(self) -> list[View]:
        return [
            View("GET", "/sign-in", self.show, role=None),
            View("POST", "/sign-in", self.sign_in, role=None),
            View("GET", "/link/{token:str}", self.show_link, role=None),
            View("POST", "/link/{token:str}", self.use_link, role=None),
            View("POST", "/sign-out", self.sign_out, role=Role.VIEWER),
        ]

    async def show(self, visit: Visit) -> Response:
        self._authenticator.check_secrets(visit)
        if visit.may(Role.VIEWER):
            return visit.redirect(_next(visit.query))
        return self._form(visit, visit.query.get("next", ""))

    async def sign_in(self, visit: Visit) -> Response:
        self._authenticator.check_secrets(visit)
        name, password = visit.form.get("name", "").strip(), visit.form.get("password", "")
        wanted = visit.form.get("next", "")
        try:
            attempt = await self._authenticator.try_password(visit, name, password)
            token = None if attempt is None else await self._accept(visit, attempt, password)
        except TooManyTries as error:
            return with_retry_after(self._form(visit, wanted, name, error.message, status=429), error)
        if token is None:
            return self._form(visit, wanted, name, "The name or the password is wrong.", status=403)
        _log.info("signed in", person=name)
        return await self._authenticator.start_session(visit, visit.redirect(_next(visit.form)), token)

    async def _accept(self, visit: Visit, attempt: Attempt, password: str) -> str | None:
        passwords, address = self._authenticator.passwords, self._authenticator.address(visit)
        is_old = attempt.stored is not None and passwords.is_old(attempt.stored)
        rehashed = await passwords.hash(password) if is_old else None
        return await self._authenticator.sign_ins.accept(attempt, address, rehashed)

    def _form(
        self, visit: Visit, wanted: str, name: str = "", fault: str = "", *, status: int = 200
    ) -> Response:
        return visit.page("sign_in.html", "Sign in", status, wanted=wanted, name=name, fault=fault)

    async def show_link(self, visit: Visit) -> Response:
        """Show the link's form. The link stays valid: programs open links to preview them."""
        self._authenticator.check_secrets(visit)
        return self._link_form(visit, await self._authenticator.sign_ins.link(visit.path["token"]))

    async def use_link(self, visit: Visit) -> Response:
        self._authenticator.check_secrets(visit)
        token = visit.path["token"]
        link = await self._authenticator.sign_ins.link(token)
        try:
            password = new_password(visit, link.person.name)
        except Invalid as error:
            return self._link_form(visit, link, error.message, status=400)
        stored = await self._authenticator.passwords.hash(password)
        session = await self._authenticator.sign_ins.redeem(token, stored, self._authenticator.address(visit))
        _log.info("password set by a link", person=link.person.name)
        response = visit.redirect(
            flash=f"Welcome, {link.person.name}. Next time, sign in with your password."
        )
        return await self._authenticator.start_session(visit, response, session)

    def _link_form(self, visit: Visit, link: SignInLink, fault: str = "", status: int = 200) -> Response:
        name = link.person.name
        return visit.page(
            "link.html",
            f"Welcome, {name}",
            status,
            name=name,
            token=link.token,
            fault=fault,
            least=PASSWORD_MIN_CHARACTERS,
        )

    async def sign_out(self, visit: Visit) -> Response:
        await self._authenticator.sign_ins.end_session_of(visit.secret)
        response = visit.redirect("sign-in", flash="You are signed out.")
        self._authenticator.cookies.end_session(visit.request, response)
        return response


def new_password(visit: Visit, name: str) -> str:
    """The new password, typed twice in the form. Raises Invalid."""
    password = visit.form.get("password", "")
    check_password(password, name)
    if visit.form.get("again", "") != password:
        raise Invalid("again", "The two passwords are not the same. Type both again.")
    return password


def _next(values: Mapping[str, str]) -> str:
    wanted = values.get("next", "")
    return wanted if _NEXT.fullmatch(wanted) and not wanted.startswith(("sign-", "link/")) else ""
