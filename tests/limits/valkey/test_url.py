"""PETSTORE_VALKEY_URL: what is understood, and refusals that show no password."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from petstore.core.errors import ConfigurationError
from petstore.limiter.valkey.client import open_client
from petstore.limiter.valkey.publisher import open_publisher
from petstore.limiter.valkey.url import ValkeyUrl, parse_url
from tests.support.cases import every_case
from tests.support.valkey import PATIENT


@every_case(
    ("text", "expected"),
    [
        ("valkey://cache", ValkeyUrl(host="cache")),
        ("valkey://cache:7000/3", ValkeyUrl(host="cache", port=7_000, database=3)),
        ("valkey://:s3cret@cache/", ValkeyUrl(host="cache", password="s3cret")),
        ("valkey://shop:p%40ss@[::1]:6379/0", ValkeyUrl(host="::1", user="shop", password="p@ss")),
        ("redis://:s3cret@cache:7000/3", ValkeyUrl(host="cache", port=7_000, password="s3cret", database=3)),
        ("rediss://cache?ca=/etc/ca.pem", ValkeyUrl(host="cache", tls=True, authority_file="/etc/ca.pem")),
        ("valkeys://cache", ValkeyUrl(host="cache", tls=True)),
        ("valkeys://cache?ca=/etc/ca.pem", ValkeyUrl(host="cache", tls=True, authority_file="/etc/ca.pem")),
        ("unix:///run/valkey.sock", ValkeyUrl(path="/run/valkey.sock")),
        (
            "unix://:s3cret@/run/valkey.sock?db=2",
            ValkeyUrl(path="/run/valkey.sock", password="s3cret", database=2),
        ),
    ],
)
def test_what_is_understood(text: str, expected: ValkeyUrl) -> None:
    """Host, port, database, user and password (percent-encoded), TLS, a socket."""
    assert parse_url(text) == expected
    assert "s3cret" not in str(parse_url(text))


@every_case(
    "text",
    [
        "",
        "cache:6379",
        "http://:s3cret@cache",
        "redis://cache?ca=/etc/ca.pem",
        "valkey://",
        "valkey://cache/zero",
        "valkey://cache/12345",
        "valkey://:s3cret@cache:70000",
        "valkey://:s3cret@cache:port",
        "valkey://cache?db=1",
        "valkey://cache?ssl=off",
        "valkeys://cache?verify=no",
        "unix://run/valkey.sock",
        "unix://",
        "valkey://[::1",
        "valkey://a..b:6379",
        "valkey://:s3cret/x@cache",
        "valkey://:s3cret#x@cache",
        "valkey://:s3cret?x@cache",
        "valkey://:s3cret\u2100@cache",
    ],
)
def test_what_is_not(text: str) -> None:
    """One line that says what to write, and never the password."""
    with pytest.raises(ConfigurationError) as error:
        parse_url(text)
    assert "valkey://host:6379" in str(error.value)
    assert "s3cret" not in str(error.value)
    assert "\n" not in str(error.value)


def test_what_a_password_has_to_look_like() -> None:
    """A character that ends the address is the likely reason for a port that is none."""
    with pytest.raises(ConfigurationError, match="/ \\? # @ in it, which is written as %2F %3F %23 %40"):
        parse_url("valkey://:pass/word@cache:6379")


@pytest.mark.parametrize("content", [None, "", "no certificate"])
async def test_a_file_of_authorities_that_is_of_no_use(tmp_path: Path, content: str | None) -> None:
    """Refused at the start with its name, for a service and for a command: it is no outage."""
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigurationError, match=r"ca\.pem can't be used as its ca: "):
        await open_client(f"valkeys://cache?ca={path}", PATIENT)
    with pytest.raises(ConfigurationError, match=r"ca\.pem can't be used as its ca: "):
        open_publisher(f"valkeys://cache?ca={path}", PATIENT, lambda _: asyncio.sleep(0))


def test_a_missing_driver_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says what to install."""
    for name in [name for name in sys.modules if name.startswith("petstore.limiter.valkey")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "libvalkey", None)
    with pytest.raises(ConfigurationError, match=r"make setup-scale.*pip install '\.\[valkey\]'"):
        import petstore.limiter.valkey  # noqa: F401
