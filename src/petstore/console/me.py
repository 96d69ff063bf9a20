"""A person's own account: their password and their sessions."""

from __future__ import annotations

from starlette.responses import Response

from petstore.console.sign_in import Authenticator, new_password
from petstore.console.visit import View, Visit, with_retry_after
from petstore.core.errors import Invalid, TooManyTries
from petstore.core.passwords import PASSWORD_MIN_CHARACTERS
from petstore.core.sign_ins import token_digest


class MyPages:
    """`/me`. Each person changes only their own password and sessions."""

    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator = authenticator

    def views(self) -> list[View]:
        return [
            View("GET", "/me", self.show),
            View("POST", "/me/password", self.change_password),
            View("POST", "/me/sessions/{session:str}/end", self.end_session),
            View("POST", "/me/sign-out-everywhere", self.sign_out_everywhere),
        ]

    async def show(self, visit: Visit) -> Response:
        return await self._page(visit)

    async def _page(self, visit: Visit, status: int = 200, faults: dict[str, str] | None = None) -> Response:
        sessions = await self._authenticator.sign_ins.sessions_of(visit.person.id)
        here = token_digest(visit.secret).hex()
        return visit.page(
            "me.html",
            "My sessions and password",
            status,
            sessions=sessions,
            this=here,
            faults=faults or {},
            least=PASSWORD_MIN_CHARACTERS,
        )

    async def change_password(self, visit: Visit) -> Response:
        """Requires the present password: a browser left open does not give the account away."""
        self._authenticator.check_secrets(visit)
        name = visit.person.name
        try:
            password = new_password(visit, name)
            attempt = await self._authenticator.try_password(visit, name, visit.form.get("present", ""))
        except Invalid as error:
            return await self._page(visit, 400, {error.field: error.message})
        except TooManyTries as error:
            return with_retry_after(await self._page(visit, 429, {"present": error.message}), error)
        if attempt is None:
            return await self._page(visit, 403, {"present": "This is not your present password."})
        stored = await self._authenticator.passwords.hash(password)
        address = self._authenticator.address(visit)
        token = await self._authenticator.sign_ins.change_password(attempt, stored, address)
        if token is None:
            return visit.redirect("sign-in", flash="Your password was changed meanwhile. Sign in again.")
        flash = "Your password is changed. Your other sessions have ended."
        return await self._authenticator.start_session(visit, visit.redirect("me", flash=flash), token)

    async def end_session(self, visit: Visit) -> Response:
        await self._authenticator.sign_ins.end_session(visit.person.id, visit.path["session"])
        return visit.redirect("me", flash="The session has ended.")

    async def sign_out_everywhere(self, visit: Visit) -> Response:
        await self._authenticator.sign_ins.end_sessions(visit.person, visit.actor)
        response = visit.redirect("sign-in", flash="You are signed out everywhere.")
        self._authenticator.cookies.end_session(visit.request, response)
        return response
