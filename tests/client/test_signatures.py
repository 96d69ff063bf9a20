"""Signatures of webhooks: what `verify` takes and refuses, beside the package `standardwebhooks` of PyPI."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from email import message_from_string
from email.message import Message
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from petstore_client import ConfigurationError, Event, InvalidSignature, UnexpectedAnswer
from petstore_client.webhooks import sign, verify
from standardwebhooks.webhooks import Webhook, WebhookVerificationError
from starlette.datastructures import Headers

from tests.support.cases import every_case

NOW = 1_764_000_000
EVENT_ID = "evt_a1_7"
EVENT: dict[str, Any] = {
    "id": EVENT_ID,
    "type": "pet.updated",
    "timestamp": "2026-11-22T21:45:43.045Z",
    "data": {"id": 7, "name": "Rex \N{DOG FACE}"},
}
BODY = json.dumps(EVENT, ensure_ascii=False).encode()


def secret_of(key: bytes) -> str:
    return "whsec_" + base64.b64encode(key).decode()


SECRET, OTHER = secret_of(b"k" * 32), secret_of(b"o" * 32)
SECRETS = st.binary(min_size=24, max_size=64).map(secret_of)
BODIES = st.dictionaries(st.text(), st.text() | st.integers() | st.none()).map(
    lambda data: json.dumps(EVENT | {"data": data}, ensure_ascii=False).encode()
)
SIGNED = sign(EVENT_ID, NOW, BODY, SECRET)


def signed(body: bytes = BODY, **changed: str) -> dict[str, str]:
    """The headers of a body, with others in their place."""
    headers = sign(EVENT_ID, NOW, body, SECRET)
    return headers | {name.replace("_", "-"): value for name, value in changed.items()}


@given(secret=SECRETS, body=BODIES)
def test_what_standardwebhooks_signs_is_verified(secret: str, body: bytes) -> None:
    """Any event, under any secret, at this moment."""
    moment = datetime.fromtimestamp(int(time.time()), UTC)
    headers = {
        "webhook-id": "evt_1",
        "webhook-timestamp": str(int(moment.timestamp())),
        "webhook-signature": Webhook(secret).sign("evt_1", moment, body.decode()),
    }
    assert verify(body, headers, secret).data == json.loads(body)["data"]


@given(secret=SECRETS, body=BODIES)
def test_standardwebhooks_verifies_what_is_signed(secret: str, body: bytes) -> None:
    """It refuses the same under another secret."""
    headers = sign("evt_1", int(time.time()), body, secret)
    assert Webhook(secret).verify(body, headers) == json.loads(body)
    with pytest.raises(WebhookVerificationError):
        Webhook(secret_of(b"another key of this length")).verify(body, headers)


@given(st.data())
def test_a_changed_bit_is_refused(data: st.DataObject) -> None:
    """The bit is one of the body, the id or the signature."""
    parts = [bytearray(part) for part in (BODY, *(value.encode() for value in SIGNED.values()))]
    part = data.draw(st.sampled_from([0, 1, 3]))  # the time is signed too, and has a test of its own
    bit = data.draw(st.integers(0, 8 * len(parts[part]) - 1))
    parts[part][bit // 8] ^= 1 << bit % 8
    headers = {name: value.decode("latin-1") for name, value in zip(SIGNED, parts[1:], strict=True)}
    with pytest.raises(InvalidSignature, match="No signature fits"):
        verify(bytes(parts[0]), headers, SECRET, now=NOW)


@pytest.mark.parametrize("now", [NOW - 300, NOW, NOW + 300])
def test_a_request_of_five_minutes_is_taken(now: int) -> None:
    """A clock may be that much ahead or behind."""
    assert verify(BODY, SIGNED, SECRET, now=now).id == EVENT_ID


@every_case(
    ("now", "tolerance", "said"),
    [
        (NOW + 300.6, 300, "signed 301 s ago, and 300 s are allowed"),
        (NOW - 301, 300, "signed 301 s in the future, and 300 s are allowed"),
        (NOW + 11, 10, "signed 11 s ago, and 10 s are allowed"),
        (None, 300, "s ago"),
    ],
)
def test_an_older_or_younger_one_is_refused(now: float | None, tolerance: float, said: str) -> None:
    """Somebody may have recorded it. The sentence says how far apart the clocks are."""
    with pytest.raises(InvalidSignature, match=rf"{said}.*clock"):
        verify(BODY, SIGNED, SECRET, now=now, tolerance_seconds=tolerance)


@every_case("moment", ["1764000001", "now", "1764000000.0", "-5", "1e9", "nan", "\N{THAI DIGIT ONE}"])
def test_another_time_is_refused(moment: str) -> None:
    """It is signed, and a number of seconds."""
    with pytest.raises(InvalidSignature, match=r"No signature fits|no Unix time"):
        verify(BODY, signed(webhook_timestamp=moment), SECRET, now=NOW)


@pytest.mark.parametrize("missing", SIGNED)
def test_a_request_without_a_header_is_refused(missing: str) -> None:
    """The sentence names it; an empty one is none."""
    without = {name: value for name, value in SIGNED.items() if name != missing}
    for headers in (without, without | {missing: ""}):
        with pytest.raises(InvalidSignature, match=rf"has no {missing}\. .*proxies"):
            verify(BODY, headers, SECRET, now=NOW)


def message(headers: dict[str, str]) -> Message:
    """Headers as `http.server` has them."""
    return message_from_string("".join(f"{name}: {value}\n" for name, value in headers.items()))


@pytest.mark.parametrize("headers_of", [dict, Headers, message])
def test_names_of_headers_are_in_any_case(headers_of: Callable[[dict[str, str]], Any]) -> None:
    """The names of headers may be in any case, in mappings and in what frameworks have."""
    headers = headers_of({name.title(): value for name, value in SIGNED.items()})
    moment = datetime.fromisoformat(EVENT["timestamp"])
    assert verify(BODY, headers, SECRET, now=NOW) == Event(EVENT_ID, EVENT["type"], moment, EVENT["data"])


def test_one_of_several_secrets_is_enough() -> None:
    """One fitting secret or signature of several is enough, while a new secret takes an old one's place."""
    assert verify(BODY, SIGNED, [OTHER, SECRET], now=NOW).id == EVENT_ID
    both = f"v1a,x {sign(EVENT_ID, NOW, BODY, OTHER)['webhook-signature']} {SIGNED['webhook-signature']}"
    assert verify(BODY, signed(webhook_signature=both), SECRET, now=NOW).id == EVENT_ID
    for foreign in (OTHER, [OTHER, secret_of(b"n" * 24)]):
        with pytest.raises(InvalidSignature, match="webhook's own secret"):
            verify(BODY, SIGNED, foreign, now=NOW)


@pytest.mark.parametrize("name", ["webhook-id", "webhook-signature"])
def test_a_header_that_is_no_text_is_refused(name: str) -> None:
    """A header with a byte that is not UTF-8, as aiohttp gives it, fits no signature."""
    with pytest.raises(InvalidSignature, match="No signature fits"):
        verify(BODY, SIGNED | {name: b"v1,\xff".decode(errors="surrogateescape")}, SECRET, now=NOW)


@every_case("signature", ["v1", "v1,", ",", "v2,{}", "{}", "V1,{}", "v1,{}="])
def test_a_signature_of_another_form_is_refused(signature: str) -> None:
    """Only `v1,` and the whole Base64."""
    spelt = signature.format(SIGNED["webhook-signature"].removeprefix("v1,"))
    with pytest.raises(InvalidSignature, match="No signature fits"):
        verify(BODY, signed(webhook_signature=spelt), SECRET, now=NOW)


@every_case(
    "secret",
    [
        "",
        "whsec_",
        f"{SECRET[:9]}!{SECRET[9:]}",
        SECRET.removeprefix("whsec_"),
        secret_of(b"k" * 23),
        [],
        "whsec_é",
    ],
)
def test_a_text_that_is_no_secret_is_a_wrong_configuration(secret: Any) -> None:
    """An empty one would let everybody sign. A key from a file may end with a line's end."""
    with pytest.raises(ConfigurationError) as caught:
        verify(BODY, SIGNED, secret, now=NOW)
    assert not secret or SECRET[8:] not in str(caught.value)
    assert verify(BODY, SIGNED, f"{SECRET}\n", now=NOW).id == EVENT_ID


def test_an_unknown_type_is_passed_on() -> None:
    """A later service may send more types, and more members."""
    body = json.dumps(EVENT | {"type": "toy.lost", "more": 1}).encode()
    assert verify(body, signed(body), SECRET, now=NOW).type == "toy.lost"


@every_case("body", [b"", b"[]", b"{}", b"\xff", b"[" * 100_000])
def test_a_signed_body_that_is_no_event_is_unexpected(body: bytes) -> None:
    """Another program has the secret."""
    with pytest.raises(UnexpectedAnswer, match="signed, but no event"):
        verify(body, signed(body), SECRET, now=NOW)
