"""The console's pages of keys and bans."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from petstore.console.accounts import KEYS_READ
from petstore.core.durations import DAY_MS, HOUR_MS
from petstore.core.keys import KEY_PATTERN, ApiKey
from petstore.core.limits.bans import BanState
from petstore.core.limits.counters import LimiterState
from petstore.core.limits.plans import resolve_plan
from petstore.core.limits.usage import UsageChanges
from petstore.core.moments import iso_day
from petstore.core.people import Role
from tests.console.conftest import assert_refused, follow
from tests.support.console import Shown, Visitor
from tests.support.journal import ACTOR, entries, written
from tests.support.service import Shop, open_shop

NEW = "accounts/1/keys/new"


async def key_of(shop: Shop, key_id: int) -> ApiKey:
    key: ApiKey = await shop.store.keys.get(key_id)
    return key


def secrets_in(text: str) -> list[str]:
    return re.findall(KEY_PATTERN, text)


def read_files(folder: Path) -> list[str]:
    return [path.read_bytes().decode("latin-1") for path in folder.iterdir()]


async def ban(shop: Shop, *key_ids: int) -> None:
    now_ms = shop.clock.now_ms()
    bans = {
        key_id: BanState(level=2, banned_from_ms=now_ms, banned_until_ms=now_ms + 60_000 * (1 + place))
        for place, key_id in enumerate(key_ids)
    }
    await shop.store.counters.save(LimiterState({}, bans), UsageChanges())


class TestIssue:
    """`/console/accounts/1/keys/new`."""

    async def test_the_key_is_shown_once(self, shop: Shop, operator: Visitor) -> None:
        """The answer that issues a key shows it, and no cache keeps it; a reload issues and shows none."""
        form = await operator.get(NEW)
        shown = await operator.submit(form, NEW, label="web", access="read")
        (secret,) = secrets_in(shown.text)
        assert shown.headers["cache-control"] == "no-store"
        assert "This is the only time that the key is shown." in shown.text
        assert (await shop.ask("GET", "/v1/pets", key=secret)).status == 200
        key = (await shop.store.keys.of_account("1"))[-1]
        assert (key.label, key.access, key.expires_at_ms) == ("web", "read", None)

        before = await written(shop.store)
        again = await operator.submit(form, NEW, label="web", access="read")
        assert (again.status, secrets_in(again.text)) == (409, [])
        assert f"Key {key.id} was issued already, and its text is shown only once." in again.text
        assert again.links[f"Revoke key {key.id}"].endswith(f"keys/{key.id}/revoke")
        assert await written(shop.store) == before

    async def test_a_form_of_yesterday_issues_nothing(self, shop: Shop, operator: Visitor) -> None:
        """That it was used is known for 24 hours."""
        form = await operator.get(NEW)
        await operator.submit(form, NEW)
        for _ in range(4):
            shop.clock.advance(6 * 3_600)
            await operator.get()  # the session goes on
        keys = await shop.store.keys.of_account("1")
        shown = await operator.submit(form, NEW)
        assert_refused(shown, 409, "This form has expired.")
        assert await shop.store.keys.of_account("1") == keys

    @pytest.mark.parametrize("year", [1970, 2100])
    async def test_whatever_the_clock_says(self, shop: Shop, year: int) -> None:
        """A machine may start years ago: its forms are complete."""
        shop.clock.set_seconds(round((year - 1_970) * 365.25 * 86_400) + 1)
        operator = await Visitor(shop).sign_in_as(Role.OPERATOR, "otto")
        shown = await operator.submit(await operator.get(NEW), NEW)
        assert (shown.status, len(secrets_in(shown.text))) == (200, 1), shown.text

    async def test_its_text_is_nowhere_else(self, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
        """The key's text is not in the journal, the log, the database's files or a later page."""
        async with open_shop(tmp_path, access_log="on") as shop:
            operator = await Visitor(shop).sign_in_as("operator")
            (secret,) = secrets_in((await operator.fill(NEW, NEW, label="web")).text)
            key_id = (await shop.store.keys.of_account("1"))[-1].id
            places = [repr(entry) for entry in await entries(shop.store)]
            for path in ("accounts/1", "journal", f"keys/{key_id}/revoke", NEW):
                page = await operator.get(path)
                assert page.status == 200
                places.append(page.body.decode())
        places += read_files(tmp_path)
        log = capfd.readouterr()
        assert "/console/accounts/{account_id}/keys/new" in log.err
        assert not [place for place in (*places, *log) if secret[11:] in place]

    async def test_a_key_expires_as_the_form_says(self, shop: Shop, operator: Visitor) -> None:
        """A key expires never, after a number of days, or at the end of a UTC day."""
        now_ms = shop.clock.now_ms()
        today = now_ms // DAY_MS
        for days, until, expires_at_ms in (
            ("", "", None),
            ("90", "", now_ms + 90 * DAY_MS),
            ("", iso_day(today), (today + 1) * DAY_MS),
        ):
            assert (await operator.fill(NEW, NEW, days=days, until=until)).status == 200
            assert (await shop.store.keys.of_account("1"))[-1].expires_at_ms == expires_at_ms


class TestRotation:
    """`/console/keys/1/rotate`."""

    async def test_the_new_key_is_shown_once(self, shop: Shop, operator: Visitor) -> None:
        """Both work for the overlap. Who sends the form again, or has another page open, is told so, and gets
        no second successor, which would end with the old key."""
        form, other = [await operator.get("keys/1/rotate") for _ in range(2)]
        assert form.form("/rotate").fields["overlap"] == "1d"
        shown = await operator.submit(form, "/rotate", overlap="2h")
        (secret,) = secrets_in(shown.text)
        assert secret.startswith("pets_test_")  # as the old one
        for key in (shop.key, secret):
            assert (await shop.ask("GET", "/v1/pets", key=key)).status == 200
        assert (await key_of(shop, 1)).expires_at_ms == shop.clock.now_ms() + 2 * HOUR_MS
        again = await operator.submit(form, "/rotate", overlap="2h")
        assert (again.status, secrets_in(again.text)) == (409, [])
        second = await operator.submit(other, "/rotate")
        assert_refused(second, 409, "Key 1 was replaced by key 2 on 2027-01-15; rotate that one")
        assert secrets_in(second.text) == []
        assert len(await shop.store.keys.of_account("1")) == 2
        assert (await key_of(shop, 2)).expires_at_ms is None

    async def test_a_key_that_has_ended(self, shop: Shop, operator: Visitor) -> None:
        """It is not replaced; the page says what to do instead."""
        form = await operator.get("keys/1/rotate")
        await shop.store.keys.revoke(1, ACTOR)
        shown = await operator.submit(form, "/rotate")
        assert_refused(shown, 409, "Key 1 is revoked; issue a new key instead.")
        assert "Issue a new key" in (await operator.get("keys/1/rotate")).links


class TestRevocation:
    """`/console/keys/1/revoke`."""

    async def test_it_asks_first(self, shop: Shop, operator: Visitor) -> None:
        """A look changes nothing; then the key's next request is refused."""
        asked = await operator.get("keys/1/revoke")
        assert "There is no way back: issue a new key instead." in asked.text
        assert (await shop.ask("GET", "/v1/pets")).status == 200
        shown = await operator.submit(asked, "/revoke")
        assert "Key 1 is revoked; its next request is refused." in shown.text
        assert (await shop.ask("GET", "/v1/pets")).status == 401
        assert (await entries(shop.store))[-1].actor == "console:a-operator"
        assert "This key is revoked already." in (await operator.get("keys/1/revoke")).text

    async def test_a_key_has_a_page(self, shop: Shop, viewer: Visitor, operator: Visitor) -> None:
        """What it is, what happened to it, and for operators what can be done."""
        await ban(shop, 1)
        for visitor in (viewer, operator):
            shown = await visitor.get("keys/1")
            assert "banned until 2027-01-15" in shown.text
            assert "tests command line Key issued" in shown.text
            assert ("Rotate" in shown.links, "Revoke" in shown.links) == (visitor is operator,) * 2
        await operator.submit(shown, "/unban")
        assert "banned until 2027" not in (await viewer.get("keys/1")).text


class TestBans:
    """`/console/bans`."""

    async def test_a_ban_is_shown_and_lifted(self, shop: Shop, operator: Visitor) -> None:
        """The account's page shows and lifts it too; the way back is where one came from."""
        await ban(shop, 1)
        page = await operator.get("accounts/1")
        assert "banned until" in page.text
        listed = await operator.get("bans")
        assert "tests 1 pets_test_" in listed.text
        shown: Shown = await operator.submit(listed, "keys/1/unban")
        assert shown.address == "/console/bans"
        assert "Key 1 is not banned any more, from its next request on. " in shown.text
        assert "No key is banned." in shown.text
        assert "key.unbanned key:1" in await written(shop.store)
        back = await operator.submit(page, "keys/1/unban")
        assert back.address == "/console/accounts/1"

    async def test_each_ban_is_on_one_page_of_the_list(
        self, shop: Shop, viewer: Visitor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Pages go by the end of the ban; a viewer sees no button."""
        monkeypatch.setattr("petstore.console.bans._ROWS", 2)
        for _ in range(2):
            await shop.store.keys.issue("1", "live", ACTOR)
        await ban(shop, 1, 2, 3)
        first = await viewer.get("bans")
        second = await follow(viewer, first, "Next page")
        numbers = [
            [int(number) for number in re.findall(r"tests (\d+) pets_", page.text)]
            for page in (first, second)
        ]
        assert numbers == [[1, 2], [3]]
        assert "Next page" not in second.links
        assert "Unban" not in first.text
        file = (await viewer.get("bans.csv")).body.decode()
        assert [int(row.split(",")[1]) for row in file.splitlines()[1:]] == [1, 2, 3]


async def test_of_very_many_keys_the_newest_are_read(shop: Shop, operator: Visitor) -> None:
    """An account's page reads no more, and says so; what ends all of them says that there may be others."""
    await shop.store.accounts.add("many", resolve_plan("free"), ACTOR)
    for _ in range(KEYS_READ + 1):
        issued = await shop.store.keys.issue("many", "test", ACTOR)
    path = f"accounts/{issued.record.account_id}"
    shown = await operator.get(path)
    assert f"Only its newest {KEYS_READ} keys are read" in shown.text
    assert (
        f"All its active keys, at least {KEYS_READ}, are revoked"
        in (await operator.get(f"{path}/close")).text
    )
    assert "all active keys of many are refused" in (await operator.get(f"{path}/suspend")).text
    assert "looked at" not in (await operator.get("accounts/1")).text
    page, listed = await operator.get(f"{path}/keys"), list[int]()
    while True:
        listed += [int(number) for number in re.findall(r"(\d+) pets_test_", page.text)]
        if "Older keys" not in page.links:
            break
        page = await follow(operator, page, "Older keys")
    assert listed == sorted(range(2, KEYS_READ + 3), reverse=True)


async def test_a_key_by_its_number(viewer: Visitor) -> None:
    """It leads to the key; before the first key there is none."""
    asked = await viewer.get("accounts/1/keys")
    assert (await viewer.submit(asked, "/keys", number="1")).address == "/console/keys/1"
    assert "There are no older keys." in (await viewer.get("accounts/1/keys?before=1")).text
