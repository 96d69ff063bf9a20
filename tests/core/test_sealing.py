"""What webhooks are signed with, in the store: sealed where there is a key, and opened with former keys."""

from __future__ import annotations

import base64
import sys

import pytest
from petstore.core.sealing import Seal

from petstore.core.errors import ConfigurationError, Unavailable
from petstore.core.webhooks import Secret, mint

OLD, NEW = (base64.urlsafe_b64encode(bytes([number]) * 32).decode() for number in (1, 2))


def test_a_sealed_text_shows_nothing_of_it() -> None:
    """A sealed text shows nothing of its secrets and is never the same twice; without a key it is plain."""
    secrets = [mint(), Secret(mint().text, 5)]
    sealed = [Seal([NEW]).close(secrets) for _ in range(2)]
    assert sealed[0] != sealed[1]
    for each in secrets:
        assert each.text.removeprefix("whsec_")[:20] not in "".join(sealed)
        assert each.text in Seal().close(secrets)
    assert [Seal([NEW]).open(text) for text in sealed] == [secrets, secrets]
    assert Seal().open(Seal().close(secrets)) == secrets


def test_a_key_takes_the_place_of_another() -> None:
    """The first seals, all open: with the new key before the former one nothing is lost, and what was stored
    without a key stays readable."""
    secrets, both = [mint()], Seal([NEW, OLD])
    for before in (Seal(), Seal([OLD])):
        assert both.open(before.close(secrets)) == secrets
    assert Seal([NEW]).open(both.close(secrets)) == secrets


@pytest.mark.parametrize(
    ("keys", "message"), [([OLD], "PETSTORE_SECRETS_KEY does not have"), ([], "is not set")]
)
def test_what_another_key_has_sealed_is_refused(keys: list[str], message: str) -> None:
    """The words are for the operator: a try that can't be signed is a failure, and is repeated."""
    with pytest.raises(Unavailable, match=message):
        Seal(keys).open(Seal([NEW]).close([mint()]))


def test_a_key_without_its_library_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is stored as it is where somebody asked for a seal."""
    monkeypatch.setitem(sys.modules, "cryptography.fernet", None)
    with pytest.raises(ConfigurationError, match="setup-scale"):
        Seal([NEW])
    Seal()
