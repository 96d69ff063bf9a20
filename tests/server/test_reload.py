"""What SIGHUP may change while the service runs; tests/e2e sends the signal."""

from __future__ import annotations

import contextlib
import socket

import msgspec
import pytest
from structlog.testing import capture_logs

from petstore import config
from petstore.core.errors import ConfigurationError
from petstore.server.parent import ParentService
from petstore.server.reload import renewed

PLACES = {
    "PETSTORE_DATABASE_URL": "postgresql://me:old@db:5432/pets",
    "PETSTORE_VALKEY_URL": "valkey://:old@counters:6379/0",
}


@pytest.mark.parametrize(
    ("name", "address", "may"),
    [
        ("DATABASE", "postgresql://me:new@db:5432/pets", True),
        ("DATABASE", "postgresql://me:old@other:5432/pets", False),
        ("DATABASE", "postgresql://me:old@db:5432/cats", False),
        ("VALKEY", "valkey://:new@counters:6379/0", True),
        ("VALKEY", "valkey://:old@counters:6379/1", False),
        ("VALKEY", "valkey://:old@other:6379/0", False),
        ("VALKEY", "", False),
    ],
)
def test_passwords_and_no_places(name: str, address: str, may: bool) -> None:
    """Workers that are replaced one by one would count in two places for a while, and see two stores."""
    old, new = (config.load(PLACES | more) for more in ({}, {f"PETSTORE_{name}_URL": address}))
    refused = pytest.raises(ConfigurationError, match=f"PETSTORE_{name}_URL: another one needs a stop")
    with contextlib.nullcontext() if may else refused:
        assert renewed(old, new) == new


def test_what_waits_for_a_restart_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another port is not in force after a reload; the option's number of workers is not another setting."""
    for name, text in (PLACES | {"PETSTORE_PORT": "9000"}).items():
        monkeypatch.setenv(name, text)
    configured = config.load(PLACES | {"PETSTORE_PORT": "8080"})
    in_force = msgspec.structs.replace(configured, workers=3)
    monkeypatch.setattr("petstore.wiring.ops.start_log_of_parent", lambda _settings: None)
    with socket.socket() as listener, capture_logs() as events:
        ParentService(in_force, listener, 1, None, configured).renew()
    assert [event["message"] for event in events if event["event"] == "restart needed"] == [
        "PETSTORE_PORT waits for a restart: the service goes on with 8080."
    ]


def test_an_unexpected_error_is_told_without_its_text() -> None:
    """The text may quote a secret: the kind and the place lead a developer to the fault."""
    with socket.socket() as listener:
        serving = ParentService(config.load(PLACES), listener, 1, None, config.load(PLACES))
    try:
        raise ValueError("hush")
    except ValueError as error:
        line = serving.explain(error)
    assert "unexpected ValueError at test_reload.py:" in line
    assert "hush" not in line
