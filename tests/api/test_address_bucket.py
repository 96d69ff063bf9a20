"""Requests without a valid key: a bucket of the client's address, and who that client is behind proxies."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.api.checks import CheckedShop, open_checked
from tests.support.clock import ManualClock
from tests.support.service import Answer

LIMIT = 5


@pytest.fixture
async def few(tmp_path: Path, clock: ManualClock) -> AsyncIterator[CheckedShop]:
    """A shop where an address may fail five times a minute, behind a proxy in 10.0.0.0/8."""
    async with open_checked(
        tmp_path, clock, address_per_minute=str(LIMIT), trusted_proxies="10.0.0.0/8,fd00::/8"
    ) as shop:
        yield shop


async def fail(shop: CheckedShop, client: str = "203.0.113.9", forwarded: str | None = None) -> Answer:
    """One request without a key."""
    headers = [] if forwarded is None else [("x-forwarded-for", forwarded)]
    return await shop.call("GET", "/v1/pets", headers, client=client)


async def used_by(shop: CheckedShop, client: str, forwarded: str | None = None) -> int:
    """How many failures are counted for the address of such a request, without adding one."""
    headers = [] if forwarded is None else [("x-forwarded-for", forwarded)]
    answer = await shop.call("OPTIONS", "/v1/pets", headers, client=client)
    return LIMIT - int(answer.headers["x-ratelimit-remaining"])


class TestBucket:
    """What is counted, and what happens past it."""

    async def test_600_a_minute_by_default(self, shop: CheckedShop) -> None:
        """600 failures, then 429 with Retry-After until the bucket's reset."""
        opened = shop.clock.now_ms() // 1_000
        for left in range(599, -1, -1):
            answer = await shop.call("GET", "/v1/pets")
            assert (answer.status, answer.headers["x-ratelimit-remaining"]) == (401, str(left))
        assert answer.headers["ratelimit-policy"] == '"address";q=600;w=60'
        assert answer.headers["ratelimit"] == '"address";r=0;t=60'
        shop.clock.ms += 12_500
        answer = await shop.call("GET", "/v1/pets")
        assert (answer.status, answer.code) == (429, "rate_limited")
        assert answer.headers["retry-after"] == "48"
        assert answer.headers["x-ratelimit-reset"] == str(opened + 60)
        shop.clock.set_seconds(opened + 60)
        answer = await shop.call("GET", "/v1/pets")
        assert (answer.status, answer.headers["x-ratelimit-remaining"]) == (401, "599")

    async def test_the_reset_is_to_the_second(self, few: CheckedShop) -> None:
        """A millisecond before it is 429, at the moment 401 again."""
        for _ in range(LIMIT):
            await fail(few)
        few.clock.ms += 59_999
        assert (await fail(few)).status == 429
        few.clock.ms += 1
        assert (await fail(few)).status == 401

    async def test_every_kind_of_failure_counts(self, few: CheckedShop) -> None:
        """Missing, malformed, unknown, expired and revoked keys, on any path."""
        key, key_id = await few.open_account("a")
        await few.store.keys.revoke(key_id)
        for value, path in (
            (None, "/v1/pets"),
            ("Basic x", "/v1/pets/1"),
            ("Bearer x", "/v1/none"),
            (f"Bearer {key}", "/v1"),
            (f"Bearer {key[:-1]}", "/v1/pets"),
        ):
            answer = await few.call("GET", path, [("authorization", value)])
            assert answer.status == 401
        assert (await few.call("GET", "/v1/pets")).status == 429

    async def test_a_valid_key_is_never_affected(self, few: CheckedShop) -> None:
        """Neither refused nor counted, however many others fail from its address."""
        for _ in range(LIMIT + 5):
            assert (await few.ask("GET", "/v1/pets")).status == 200
        assert await used_by(few, "127.0.0.1") == 0
        for _ in range(LIMIT + 5):
            await fail(few, "127.0.0.1")
        answer = await few.ask("GET", "/v1/pets")
        assert (answer.status, answer.headers["x-ratelimit-remaining"]) == (200, "999989")
        assert await used_by(few, "127.0.0.1") == LIMIT

    async def test_refusals_are_no_charge(self, few: CheckedShop) -> None:
        """Past the bucket nothing is counted on: the next minute is whole."""
        for _ in range(LIMIT * 3):
            await fail(few)
        few.clock.advance(60)
        assert (await fail(few)).headers["x-ratelimit-remaining"] == str(LIMIT - 1)

    async def test_options_is_described_and_never_refused(self, few: CheckedShop) -> None:
        """204 also when nothing remains."""
        for _ in range(LIMIT + 1):
            await fail(few)
        answer = await few.call("OPTIONS", "/v1/pets", client="203.0.113.9")
        assert (answer.status, answer.headers["x-ratelimit-remaining"]) == (204, "0")

    async def test_head_is_counted_like_get(self, few: CheckedShop) -> None:
        """And its 429 has no body."""
        for _ in range(LIMIT):
            assert (await few.call("HEAD", "/v1/pets")).status == 401
        assert (await few.call("HEAD", "/v1/pets")).status == 429

    async def test_429_carries_no_challenge(self, few: CheckedShop) -> None:
        """Too many attempts is not a question for a key."""
        for _ in range(LIMIT):
            await fail(few)
        assert "www-authenticate" not in (await fail(few)).headers

    @pytest.mark.parametrize("step", [-30, -86_400])
    async def test_a_clock_that_steps_back(self, few: CheckedShop, step: int) -> None:
        """The count is kept, and the reset is at most a minute away."""
        for _ in range(LIMIT):
            await fail(few)
        few.clock.advance(step)
        answer = await fail(few)
        assert (answer.status, answer.headers["retry-after"]) == (429, "60")


class TestAddresses:
    """One bucket for each client, IPv6 by its network."""

    async def test_addresses_do_not_share(self, few: CheckedShop) -> None:
        """Another IPv4 address is another client."""
        await fail(few, "203.0.113.9")
        assert await used_by(few, "203.0.113.9") == 1
        assert await used_by(few, "203.0.113.10") == 0

    async def test_ipv6_by_64_bits(self, few: CheckedShop) -> None:
        """One subscriber owns a /64."""
        await fail(few, "2001:db8:1:2::1")
        assert await used_by(few, "2001:db8:1:2:ffff:ffff:ffff:ffff") == 1
        assert await used_by(few, "2001:0DB8:0001:0002::99") == 1
        assert await used_by(few, "2001:db8:1:3::1") == 0

    async def test_ipv4_in_ipv6_is_ipv4(self, few: CheckedShop) -> None:
        """A mapped address is the address that it maps."""
        await fail(few, "::ffff:203.0.113.9")
        assert await used_by(few, "203.0.113.9") == 1
        assert await used_by(few, "::ffff:203.0.113.10") == 0

    async def test_what_is_no_address_shares_one_bucket(self, few: CheckedShop) -> None:
        """A peer without an address, such as a local socket, has a bucket too."""
        await fail(few, "")
        assert await used_by(few, "unix") == 1


class TestProxies:
    """X-Forwarded-For is believed from trusted peers only, and from the right."""

    async def test_an_untrusted_peer_is_itself(self, few: CheckedShop) -> None:
        """Whatever it writes."""
        await fail(few, "203.0.113.9", "198.51.100.1")
        assert await used_by(few, "203.0.113.9") == 1
        assert await used_by(few, "198.51.100.1") == 0

    async def test_a_trusted_peer_speaks_for_its_client(self, few: CheckedShop) -> None:
        """The right-most hop."""
        await fail(few, "10.0.0.1", "198.51.100.1")
        assert await used_by(few, "198.51.100.1") == 1
        assert await used_by(few, "10.0.0.1") == 0

    async def test_the_left_end_is_never_believed(self, few: CheckedShop) -> None:
        """A client that writes the header itself cannot choose its bucket."""
        for spoofed in ("1.1.1.1", "2.2.2.2", "garbage", "", "10.0.0.9", "127.0.0.1", "2.2.2.2, 3.3.3.3"):
            await fail(few, "10.0.0.1", f"{spoofed}, 198.51.100.1")
        assert await used_by(few, "198.51.100.1") == LIMIT
        assert (await fail(few, "10.0.0.1", "9.9.9.9, 198.51.100.1")).status == 429
        assert (await fail(few, "10.0.0.1", "198.51.100.2")).status == 401

    async def test_trusted_hops_are_passed_over(self, few: CheckedShop) -> None:
        """Right-most untrusted: a chain of one's own proxies, IPv6 among them."""
        await fail(few, "10.0.0.1", "1.1.1.1, 198.51.100.1, 10.2.3.4,fd00::1")
        assert await used_by(few, "198.51.100.1") == 1

    async def test_the_whole_chain_trusted(self, few: CheckedShop) -> None:
        """Then the left-most is the client."""
        await fail(few, "10.0.0.1", "10.9.9.9, 10.2.3.4")
        assert await used_by(few, "10.9.9.9") == 1

    async def test_garbage_ends_the_chain(self, few: CheckedShop) -> None:
        """What is behind a hop that is no address is not believed, and nobody else pays for it."""
        await fail(few, "10.0.0.1", "198.51.100.1, unknown, 10.2.3.4")
        await fail(few, "10.0.0.1", "garbage")
        assert await used_by(few, "10.0.0.1", "unknown") == 2
        for address in ("198.51.100.1", "10.2.3.4", "10.0.0.1"):
            assert await used_by(few, address) == 0

    async def test_a_port_is_no_part_of_the_client(self, few: CheckedShop) -> None:
        """Some proxies write one."""
        await fail(few, "10.0.0.1", "198.51.100.1:5555")
        await fail(few, "10.0.0.1", "[2001:db8:1:2::1]:99")
        assert await used_by(few, "198.51.100.1") == 1
        assert await used_by(few, "2001:db8:1:2::2") == 1

    async def test_several_headers_are_one_chain(self, few: CheckedShop) -> None:
        """In the order in which they stand."""
        headers = [
            ("x-forwarded-for", "1.1.1.1"),
            ("x-forwarded-for", "198.51.100.1"),
            ("x-forwarded-for", "10.2.3.4"),
        ]
        await few.call("GET", "/v1/pets", headers, client="10.0.0.1")
        assert await used_by(few, "198.51.100.1") == 1

    @pytest.mark.parametrize(
        "name", ["forwarded", "x-real-ip", "x-client-ip", "cf-connecting-ip", "true-client-ip"]
    )
    async def test_other_headers_are_not_read(self, few: CheckedShop, name: str) -> None:
        """Only X-Forwarded-For."""
        await few.call("GET", "/v1/pets", [(name, "198.51.100.1")], client="10.0.0.1")
        assert await used_by(few, "10.0.0.1") == 1

    async def test_without_trusted_proxies_nobody_is_believed(self, shop: CheckedShop) -> None:
        """The default."""
        for number in range(3):
            answer = await shop.call("GET", "/v1/pets", [("x-forwarded-for", f"198.51.100.{number}")])
        assert answer.headers["x-ratelimit-remaining"] == "597"
