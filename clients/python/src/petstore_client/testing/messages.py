"""Requests as the fake got them, its answers, and the errors that it can give."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

_CODES = {
    400: "invalid_request invalid_json invalid_body invalid_parameter invalid_header",
    401: "unauthorized",
    403: "account_suspended forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "request_timeout",
    409: "conflict idempotency_key_in_use",
    410: "gone events_gone",
    412: "precondition_failed",
    413: "payload_too_large",
    414: "uri_too_long",
    415: "unsupported_media_type",
    422: "idempotency_key_reused",
    429: "rate_limited key_banned",
    431: "headers_too_large",
    500: "internal_error",
    503: "unavailable outcome_unknown",
}
STATUS = {code: status for status, codes in _CODES.items() for code in codes.split()}
RETRY_AFTER_SECONDS = {"idempotency_key_in_use": 1, "unavailable": 1, "outcome_unknown": 1}


@dataclass(frozen=True)
class Request:
    """What was sent. Names of `headers` are in lower case. `operation` is the contract's, such as createPet;
    it is empty where path and method have none.
    """

    method: str
    target: str
    headers: Mapping[str, str] = field(hash=False)
    content: bytes
    operation: str

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def query(self) -> dict[str, list[str]]:
        return parse_qs(self.target.partition("?")[2], keep_blank_values=True)

    @property
    def document(self) -> Any:
        """The JSON body; None without one."""
        return json.loads(self.content) if self.content else None


@dataclass(frozen=True)
class Answer:
    """Status, headers of its own, and the document as JSON."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    content: bytes = b""
    is_named_by_tag: bool = True  # its tag is of all that it shows


class Refusal(Exception):
    """An error of the catalogue."""

    def __init__(self, code: str, message: str, **headers: str) -> None:
        super().__init__(message)
        self.code = code
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}

    def answer(self, credential_sent: bool) -> Answer:
        """The answer with the headers that its kind needs."""
        headers = {"link": f'</docs/errors#{self.code}>; rel="help"', **self.headers}
        status = STATUS[self.code]
        if status == 401:
            error = ', error="invalid_token"' if credential_sent else ""
            headers["www-authenticate"] = f'Bearer realm="petstore"{error}'
        if self.code in RETRY_AFTER_SECONDS:
            headers.setdefault("retry-after", str(RETRY_AFTER_SECONDS[self.code]))
        return Answer(status, headers, encode({"code": self.code, "message": str(self), "status": status}))


class NoAnswer(Exception):
    """The request was carried out, and its client gets no answer: `slow` after its time limit, or at once."""

    def __init__(self, *, slow: bool) -> None:
        super().__init__("The fake was told to lose this answer.")
        self.slow = slow


def encode(document: object) -> bytes:
    """JSON as the service writes it."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def tag_of(content: bytes) -> str:
    """The entity tag of a representation."""
    return f'"{hashlib.sha256(content).hexdigest()[:24]}"'
