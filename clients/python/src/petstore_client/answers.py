"""What came back from the network, and what it means: the error of an answer, its links, its document."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from typing import Any, Generic, TypeVar
from urllib.parse import parse_qs, urlsplit

from petstore_client.documents import read_array
from petstore_client.errors import ApiError, NotFound, UnexpectedAnswer, api_error
from petstore_client.limits import WAIT_MAX_SECONDS, service_time
from petstore_client.models import Order, Pet, Webhook, WebhookWithSecret

_T = TypeVar("_T")
_Tagged = TypeVar("_Tagged", Pet, Order, Webhook, WebhookWithSecret)
_SECONDS = re.compile(r"[0-9]+(\.[0-9]+)?")
_ADDRESS_MAX_CHARACTERS = 16_384  # the service takes 8,192
_REMOVED = {204, 404}  # 404 after a repetition
_LINK = re.compile(r'<([^<>]*)>((?:\s*;\s*[^,;"]+(?:"[^"]*")?)*)')
_NEXT = re.compile(r';\s*rel\s*=\s*(?:"(?:[^"]*\s)?next(?:\s[^"]*)?"|next\s*(?:;|$))', re.IGNORECASE)


@dataclass(frozen=True)
class Answer:
    """A response. `headers` finds names in any case; `url` is the address that was asked.

    `content` is None where there was more of it than any answer of the service has.
    """

    status: int
    headers: Mapping[str, str]
    content: bytes | None
    url: str

    @property
    def request_id(self) -> str | None:
        return self.headers.get("x-request-id")


@dataclass(frozen=True)
class Fault:
    """No whole response came. `sent` is False when surely nothing had been sent."""

    message: str
    sent: bool


def retry_after_seconds(answer: Answer, wall: float) -> float | None:
    """`Retry-After` in seconds, from either of its forms (RFC 9110, 10.2.3); `wall` is the time by Unix."""
    text = answer.headers.get("retry-after", "").strip()
    parts = [part.strip() for part in text.split(",")]  # a proxy may have added a header of its own
    if all(_SECONDS.fullmatch(part) for part in parts):
        return min(max(float(part) for part in parts), WAIT_MAX_SECONDS)
    try:
        seconds = parsedate_to_datetime(text).timestamp() - service_time(answer.headers, wall)
    except (ValueError, TypeError, OverflowError):
        return None
    return min(max(seconds, 0.0), WAIT_MAX_SECONDS)


def error_of(answer: Answer, wall: float) -> ApiError:
    """The error that an answer of 400 and above stands for."""
    after = retry_after_seconds(answer, wall)
    try:
        document = json.loads(answer.content or b"")
        code, message = document["code"], document["message"]
    except (ValueError, KeyError, TypeError, RecursionError):
        code = message = None
    if not (isinstance(code, str) and isinstance(message, str)):
        code = f"http_{answer.status}"
        message = f"{_host(answer.url)} answered {answer.status} without an error of the service."
    return api_error(code, message, answer.status, answer.request_id, after)


def document_of(answer: Answer) -> Any:
    """The JSON document of an answer of success; raises UnexpectedAnswer."""
    if answer.content is None:
        raise UnexpectedAnswer(f"{_host(answer.url)} answered {answer.status} with more than 16 MiB.")
    try:
        return json.loads(answer.content)
    except (ValueError, RecursionError):
        raise UnexpectedAnswer(
            f"{_host(answer.url)} answered {answer.status} without JSON. Is the base address the service's?"
        ) from None


def check_removal(answer: Answer) -> None:
    """Raise UnexpectedAnswer unless the service said that something is gone.

    A network that asks for a sign-in answers every request with 200 and a page of its own.
    """
    if answer.status not in _REMOVED:
        raise UnexpectedAnswer(
            f"{_host(answer.url)} answered {answer.status}, and the service answers a removal with 204."
            " Is the base address the service's?"
        )


def next_cursor(answer: Answer) -> str | None:
    """The cursor of the link to the next page (RFC 8288); None on the last page.

    Only the cursor counts. The link may name another host, to which the key must not go.
    """
    return None if _next_reference(answer) is None else _parameter_of_next(answer, "cursor")


def bookmark_of(answer: Answer) -> str:
    """The bookmark in the link to the next events; raises UnexpectedAnswer without one."""
    return _parameter_of_next(answer, "after")


def _parameter_of_next(answer: Answer, name: str) -> str:
    reference = _next_reference(answer) or ""
    try:
        return parse_qs(urlsplit(reference[:_ADDRESS_MAX_CHARACTERS]).query)[name][0]
    except (ValueError, KeyError):
        raise UnexpectedAnswer(
            f"{_host(answer.url)} sent no `{name}` in the link to what comes next."
        ) from None


def _next_reference(answer: Answer) -> str | None:
    links: list[tuple[str, str]] = _LINK.findall(answer.headers.get("link", ""))
    return next((reference for reference, parameters in links if _NEXT.search(parameters)), None)


def _host(url: str) -> str:
    return urlsplit(url).netloc


@dataclass(frozen=True)
class Page(Generic[_T]):
    """A page of a list. `next_cursor` asks for the next one, with the same filters; it is None on the last.

    It is opaque text that does not expire: put it into the address of your own next page.
    """

    items: tuple[_T, ...]
    next_cursor: str | None


@dataclass(frozen=True)
class Answered(Generic[_T]):
    """The result of a call, with what came beside it. `headers` finds names in any case."""

    value: _T
    status: int
    headers: Mapping[str, str]
    request_id: str | None


def reads(read: Callable[[Any], _T]) -> Callable[[Answer], _T]:
    """Reads the document of an answer; raises UnexpectedAnswer when it is not the contract's."""

    def read_answer(answer: Answer) -> _T:
        try:
            return read(document_of(answer))
        except (ValueError, TypeError, AttributeError) as error:
            raise UnexpectedAnswer(f"The answer is not the contract's: {error}.") from None

    return read_answer


def page_of(read: Callable[[Any], _T]) -> Callable[[Answer], Page[_T]]:
    """Reads a page, each of whose items `read` reads."""
    read_items = reads(read_array(read))
    return lambda answer: Page(read_items(answer), next_cursor(answer))


def tagged(read: Callable[[Answer], _Tagged]) -> Callable[[Answer], _Tagged]:
    """Reads a resource with the answer's ETag."""
    return lambda answer: replace(read(answer), etag=answer.headers.get("etag", ""))


def only_item(read: Callable[[Any], _Tagged], absent: str) -> Callable[[Answer], _Tagged]:
    """The one that was asked for by its identifier: the tag of its list is its own."""
    read_items = reads(read_array(read))

    def read_first(answer: Answer) -> _Tagged:
        items = read_items(answer)
        if not items:
            raise NotFound("not_found", absent, 404, answer.request_id)
        return items[0]

    return tagged(read_first)
