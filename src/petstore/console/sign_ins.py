"""Signing in and out: the sign-in page, one-time links, a person's own password and sessions."""

from __future__ import annotations

import re
from collections.abc import Mapping

import structlog
from starlette.responses import Response

from petstore.console.contacts import ContactBlock
from petstore.console.visit import View, Visit, asks_again
from petstore.core.errors import Forbidden, Invalid, TooManyTries
from petstore.core.passwords import PASSWORD_MIN_CHARACTERS, check_password
from petstore.core.people import Role
from petstore.core.sign_ins import SignInAttempt, token_digest

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


async def show(visit: Visit) -> Response:
    _check_secrets(visit)
    if visit.may(Role.VIEWER):
        return visit.redirect(_next(visit.query))
    return _form(visit)


def _form(visit: Visit) -> Response:
    wanted = (visit.form or visit.query).get("next", "")
    return visit.page("sign_in.html", "Sign in", wanted=wanted, name=visit.typed("name"))


async def sign_in(visit: Visit) -> Response:
    _check_secrets(visit)
    name, password = visit.typed("name"), visit.form.get("password", "")
    try:
        attempt = await _compare_password(visit, name, password)
        token = None if attempt is None else await _accept(visit, attempt, password)
    except TooManyTries as error:
        visit.refuse(error)
        return _form(visit)
    if token is None:
        visit.refuse(Forbidden("The name or the password is wrong."))
        return _form(visit)
    _log.info("signed in", person=name)
    return await _start_session(visit, visit.redirect(_next(visit.form)), token)


async def _accept(visit: Visit, attempt: SignInAttempt, password: str) -> str | None:
    passwords = visit.desk.passwords
    is_old = attempt.stored is not None and passwords.is_old(attempt.stored)
    rehashed = await passwords.hash(password) if is_old else None
    return await visit.store.sign_ins.accept(attempt, visit.browser.address, rehashed)


async def show_link(visit: Visit) -> Response:
    """Show the link's form. The link stays valid: programs open links to preview them."""
    _check_secrets(visit)
    link = await visit.store.sign_ins.link(visit.path["token"])
    name, least = link.person.name, PASSWORD_MIN_CHARACTERS
    return visit.page("link.html", f"Welcome, {name}", name=name, token=link.token, least=least)


@asks_again(show_link, Invalid)
async def use_link(visit: Visit) -> Response:
    _check_secrets(visit)
    token = visit.path["token"]
    person = (await visit.store.sign_ins.link(token)).person
    password = _new_password(visit, person.name)
    stored = await visit.desk.passwords.hash(password)
    session = await visit.store.sign_ins.redeem(token, stored, visit.browser.address)
    _log.info("password set by a link", person=person.name)
    response = visit.redirect(flash=f"Welcome, {person.name}. Next time, sign in with your password.")
    return await _start_session(visit, response, session)


async def sign_out(visit: Visit) -> Response:
    await visit.store.sign_ins.end_session_of(visit.secret)
    response = visit.redirect("sign-in", flash="You are signed out.")
    visit.browser.end_session(response)
    return response


async def show_me(visit: Visit) -> Response:
    return visit.page(
        "me.html",
        "My settings",
        sessions=await visit.store.sign_ins.sessions_of(visit.person.id),
        this=token_digest(visit.secret).hex(),
        shop_zone=visit.desk.options.zone,
        own_zone=visit.form.get("time_zone", visit.person.time_zone),
        least=PASSWORD_MIN_CHARACTERS,
        mail=await _MAIL.block(visit, visit.person.id),
    )


@asks_again(show_me, Invalid, TooManyTries, beside="present")
async def change_password(visit: Visit) -> Response:
    """Requires the current password: a browser left open does not give the account away."""
    _check_secrets(visit)
    name = visit.person.name
    password = _new_password(visit, name)
    attempt = await _compare_password(visit, name, visit.form.get("present", ""))
    if attempt is None:
        visit.refuse(Forbidden("This is not your current password."), "present")
        return await show_me(visit)
    stored = await visit.desk.passwords.hash(password)
    token = await visit.store.sign_ins.change_password(attempt, stored, visit.browser.address)
    if token is None:
        return visit.redirect("sign-in", flash="Your password was changed meanwhile. Sign in again.")
    flash = "Your password is changed. Your other sessions have ended."
    return await _start_session(visit, visit.redirect("me", flash=flash), token)


@asks_again(show_me, Invalid)
async def set_time_zone(visit: Visit) -> Response:
    zone = visit.typed("time_zone") or None
    await visit.store.people.set_time_zone(visit.person.name, zone, visit.actor)
    return visit.redirect("me", flash="Saved.")


async def end_session(visit: Visit) -> Response:
    await visit.store.sign_ins.end_session(visit.person.id, visit.path["session"])
    return visit.redirect("me", flash="The session has ended.")


async def sign_out_everywhere(visit: Visit) -> Response:
    await visit.store.sign_ins.end_sessions(visit.person, visit.actor)
    response = visit.redirect("sign-in", flash="You are signed out everywhere.")
    visit.browser.end_session(response)
    return response


def _check_secrets(visit: Visit) -> None:
    """Raise Forbidden if a password would cross the network without TLS."""
    if not visit.browser.takes_secrets():
        raise Forbidden(_NEEDS_TLS)


async def _compare_password(visit: Visit, name: str, password: str) -> SignInAttempt | None:
    """The attempt if the password is right, else None. Raises TooManyTries before any hash."""
    try:
        attempt = await visit.store.sign_ins.take_attempt(name, visit.browser.address)
    except TooManyTries:
        _log.warning("sign-in refused", reason="too many tries")
        raise
    if await visit.desk.passwords.verify(attempt.stored, password):
        return attempt
    known = attempt.person.name if attempt.person is not None else None
    _log.warning("sign-in refused", reason="wrong name or password", person=known)
    return None


async def _start_session(visit: Visit, response: Response, token: str) -> Response:
    """Add the cookie of a new session to the response. End the browser's earlier session."""
    if visit.may(Role.VIEWER):
        await visit.store.sign_ins.end_session_of(visit.secret)
    visit.browser.keep_session(response, token)
    return response


def _new_password(visit: Visit, name: str) -> str:
    """The new password, typed twice in the form. Raises Invalid."""
    password = visit.form.get("password", "")
    check_password(password, name)
    if visit.form.get("again", "") != password:
        raise Invalid("again", "The two passwords are not the same. Type both again.")
    return password


def _next(values: Mapping[str, str]) -> str:
    wanted = values.get("next", "")
    return wanted if _NEXT.fullmatch(wanted) and not wanted.startswith(("sign-", "link/")) else ""


_MAIL = ContactBlock("person", "/me", Role.VIEWER, lambda visit: visit.person.name, show_me)
VIEWS = [
    View("GET", "/sign-in", show, role=None),
    View("POST", "/sign-in", sign_in, role=None),
    View("GET", "/link/{token}", show_link, role=None),
    View("POST", "/link/{token}", use_link, role=None),
    View("POST", "/sign-out", sign_out),
    View("GET", "/me", show_me),
    *_MAIL.views(),
    View("POST", "/me/password", change_password),
    View("POST", "/me/time-zone", set_time_zone),
    View("POST", "/me/sessions/{session}/end", end_session),
    View("POST", "/me/sign-out-everywhere", sign_out_everywhere),
]
