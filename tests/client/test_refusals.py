"""The key goes to the given address only, and into no text."""

from __future__ import annotations

import logging
import pickle
import time
from traceback import TracebackException
from typing import Any

import httpx2
import pytest
from petstore_client import (
    ApiError,
    AsyncPetstore,
    ConfigurationError,
    Page,
    Petstore,
    PetstoreError,
    RedirectRefused,
    UnexpectedAnswer,
)
from petstore_client.calls import list_pets

from tests.client.kit import ADDRESS, KEY, PET, Scripted, answer, failure
from tests.support.cases import every_case


@pytest.mark.parametrize("client", [Petstore, AsyncPetstore])
@pytest.mark.parametrize(
    "key",
    [
        "",
        "pets_live_...",
        KEY + "\n",
        f" {KEY}",
        f"Bearer {KEY}",
        KEY[:-1],
        KEY.replace("test", "prod"),
        KEY + "é",
        None,
    ],
)
def test_what_is_no_key_is_refused(client: Any, key: Any) -> None:
    """A text that is no key is refused unsent and is not shown, as it may be another secret."""
    with pytest.raises(ConfigurationError, match="pets_live_") as caught:
        client(ADDRESS, key)
    assert not key or key.strip() not in str(caught.value)


@every_case(
    ("address", "says"),
    [
        ("", "https://"),
        (None, "https://"),
        ("localhost:8080", "https://"),
        ("ftp://localhost", "https://"),
        ("http://", "https://"),
        ("https://user:secret@shop.example", "no user"),
        ("https://shop.example?key=1", "query"),
        ("https://shop.example#v1", "fragment"),
        ("https://shop.example:port", "not an address"),
        ("https://shop.example:99999", "not an address"),
        ("http://[::1", "not an address"),
        ("https://shop..example", "not an address"),
        ("https://my shop.example", "not an address"),
        ("https://shop\u200b.example", "not an address"),  # pasted from a page
        ("https://256.1.1.1", "not an address"),
        ("https://shop.example/v1/pets", "Leave out"),
        ("http://shop.example", "unencrypted"),
        ("http://10.0.0.1", "unencrypted"),
        ("http://localhost.shop.example", "unencrypted"),
    ],
)
def test_what_is_no_address_is_refused(address: Any, says: str) -> None:
    """The refusal says what to do. Plain http is for this machine."""
    with pytest.raises(ConfigurationError, match=says) as caught:
        Petstore(address, KEY)
    assert "secret" not in str(caught.value)


@every_case(
    "address",
    [
        "http://localhost",
        "http://127.0.0.1:8080/",
        "http://[::1]:8080/v1",
        "http://shop.localhost/v1/",
        "https://a.example/x",
        "http://10.0.0.1:8080",
    ],
)
def test_addresses_with_and_without_version(address: str) -> None:
    """`/v1` is added where it is missing; a prefix stays. Plain http in a network needs `allow_http`."""
    shown = repr(Petstore(address, KEY, allow_http="10.0.0.1" in address))
    assert shown == f"<Petstore {address.rstrip('/').removesuffix('/v1')}/v1>"


@every_case(
    "options",
    [{"tries": 0}, {"seconds": -1}, {"timeout": 0}, {"seconds": float("nan")}, {"timeout": float("inf")}],
)
def test_options_out_of_range_are_refused(options: dict[str, float]) -> None:
    """A copy with other options refuses them too."""
    with pytest.raises(ConfigurationError, match="at least 1"):
        Petstore(ADDRESS, KEY, **options)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="at least 1"):
        Petstore(ADDRESS, KEY).with_options(**options)  # type: ignore[arg-type]


@every_case("status", [301, 302, 303, 307, 308, 304])
@every_case("location", ["https://evil.example/v1/usage", "/v2/usage", "//evil.example", None])
def test_a_redirect_is_not_followed(scripted: Scripted, status: int, location: str | None) -> None:
    """Nothing is sent anywhere else; the error names the other host."""
    headers = {} if location is None else {"Location": location}
    petstore, script = scripted(answer(status, headers=headers))
    with pytest.raises(
        RedirectRefused, match="evil.example" if location and "evil" in location else "another"
    ):
        petstore.usage()
    assert [request.url.host for request in script.requests] == ["localhost"]


# The header of a page, and the cursor that is asked for next.
LINKS = {
    '</v1/pets?cursor=b>; rel="next"': "b",
    '<http://localhost/v1/pets?limit=9&cursor=b>; rel="next", </v1/pets>; rel="first"': "b",
    '</a,b>; rel="first", <?cursor=b;c>; title="x, y"; rel="last next"': "b;c",
    "</v1/pets?cursor=b%2B>; rel=next": "b+",
    '<https://evil.example:81/v2/orders?cursor=b>; rel="next"': "b",
    '</v1/pets>; rel="first"': None,
    '</v1/pets>; rel="nextish"': None,
    "nonsense": None,
}


@pytest.mark.parametrize("link", LINKS)
def test_a_walk_asks_its_own_address_for_the_next_cursor(scripted: Scripted, link: str) -> None:
    """Whatever else the link says (RFC 8288): the key goes nowhere else."""
    petstore, script = scripted(answer(200, [PET], {"Link": link}), answer(200, [PET]))
    assert len(list(petstore.pets.list(status="sold"))) == len(script.requests) == (2 if LINKS[link] else 1)
    asked = [
        (str(request.url.copy_with(query=None)), dict(request.url.params)) for request in script.requests
    ]
    filters = {"status": "sold", "limit": "100"}
    expected = [filters, {**filters, "cursor": LINKS[link]}][: len(asked)]
    assert asked == [(f"{ADDRESS}/v1/pets", parameters) for parameters in expected]


# Why a walk ends, and the links of its pages.
ENDED = {
    "no `cursor`": ["?limit=100"],
    "circle": ["?cursor=a", "?cursor=b", "?cursor=a", "?cursor=b"],
    "in a circle": ["?cursor=a", "?cursor=a"],
}


@pytest.mark.parametrize("says", ENDED)
def test_a_link_that_leads_nowhere_ends_the_walk(scripted: Scripted, says: str) -> None:
    """No walk goes on for ever."""
    pages = [answer(200, [PET], {"Link": f'<{reference}>; rel="next"'}) for reference in ENDED[says]]
    petstore, script = scripted(*pages)
    with pytest.raises(UnexpectedAnswer, match=says):
        list(petstore.pets.list())
    assert len(script.requests) == len(pages)


def test_a_link_of_any_length_costs_little(scripted: Scripted) -> None:
    """It is read in one pass: for each `<` anew it would take ten seconds."""
    petstore, _ = scripted(answer(200, [PET], {"Link": "<" * 30_000}))
    began = time.process_time()
    assert len(list(petstore.pets.list())) == 1
    assert time.process_time() - began < 3.0


def test_a_walk_remembers_no_more_than_two_pages() -> None:
    """A million pages need no more memory than ten."""
    call = list_pets()
    for number in range(1_000):
        assert call
        call = call.after(Page((), f"opaque-{number}"))
    assert repr(call).count("opaque-") == 2


@pytest.mark.parametrize(
    "strange",
    [
        answer(302, headers={"Location": "http://[::1"}),
        answer(200, [PET], {"Link": '<http://[::1>; rel="next"'}),
        answer(200, [PET], {"Link": f'<?a={"a" * 70_000}&cursor=b>; rel="next"'}),
        answer(200, content=b"[" * 200_000),
        answer(400, content=b"[" * 200_000),
    ],
    ids=["redirect", "link", "long link", "success", "error"],
)
def test_a_strange_answer_holds_up_no_other_call(scripted: Scripted, strange: httpx2.Response) -> None:
    """It is an error of the client's, and the call gives its place back."""
    petstore, script = scripted(strange, answer(200, []))
    with pytest.raises(PetstoreError):
        list(petstore.pets.list())
    assert petstore.categories.list() == []
    assert len(script.requests) == 2


@pytest.mark.parametrize("identifier", ["../store/orders/5", "5", 5.0, True, None])
def test_what_is_no_identifier_is_not_sent(scripted: Scripted, identifier: Any) -> None:
    """Text would lead the request, with the key, to another path than the method's."""
    petstore, script = scripted(answer(204))
    for method in (
        petstore.pets.delete,
        petstore.pets.get,
        petstore.orders.cancel,
        petstore.orders.place,
    ):
        with pytest.raises(TypeError, match="integer"):
            method(identifier)
    assert script.requests == []


def test_the_key_is_in_no_text(kind: str, scripted: Scripted, caplog: pytest.LogCaptureFixture) -> None:
    """The key is not in repr, errors or the logs of the client and of httpx2, at any level."""
    caplog.set_level(logging.DEBUG)
    texts = []
    for outcome in (failure(401, "unauthorized"), httpx2.ReadError("ended"), answer(302), answer(200)):
        petstore, script = scripted(outcome, tries=1)
        with pytest.raises(Exception) as caught:
            petstore.usage()
        texts += [repr(caught.value), str(caught.value), repr(caught.value.__cause__), repr(petstore)]
        texts += [repr(vars(petstore)) if kind == "sync" else ""]
    assert script.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in "".join([*texts, caplog.text])


def test_the_key_is_in_no_traceback(scripted: Scripted) -> None:
    """Trackers of errors keep each frame's variables, also of a call that an interrupt or a timeout ends."""
    petstore, _ = scripted(TimeoutError())
    with pytest.raises(TimeoutError) as caught:
        petstore.usage()
    report = TracebackException.from_exception(caught.value, capture_locals=True)
    assert "authorization" in (shown := "".join(report.format()).lower())
    assert KEY not in shown


@pytest.mark.parametrize("text", ["\x1b[31mred\r\nX: y", "\x9b\u202e\ud800", "a" * 9_999, "\n" * 9_999])
def test_a_servers_text_forges_no_line_of_a_log(scripted: Scripted, text: str) -> None:
    """What is not printable is escaped, and the length is bounded: of message, code and request id."""
    document = {"code": text, "message": text, "status": 400}
    told: Any = {"X-Request-Id": text.encode("latin-1", "replace")}
    petstore, _ = scripted(answer(400, document, told))
    with pytest.raises(ApiError) as caught:
        petstore.usage()
    error = caught.value
    for shown in (str(error), repr(error), error.code, error.message, str(pickle.loads(pickle.dumps(error)))):
        assert shown.isprintable()
        assert len(shown) < 3_100
    assert error.message.startswith(("\\x1b[31mred\\r\\nX: y", "\\x9b\\u202e\\ud800", "aaa", "\\n\\n"))


def test_a_printable_text_stays(scripted: Scripted) -> None:
    """Another script stays, and a backslash."""
    message = "Für \N{DOG FACE} gibt es keinen Preis: \\n."
    petstore, _ = scripted(failure(400, "x", message))
    with pytest.raises(ApiError) as caught:
        petstore.usage()
    assert caught.value.message == message


def test_the_client_names_itself(scripted: Scripted) -> None:
    """The operator's logs have its name and version."""
    petstore, script = scripted(answer(200, []))
    petstore.categories.list()
    assert script.requests[0].headers["user-agent"] == "petstore-client/1.1.0"
