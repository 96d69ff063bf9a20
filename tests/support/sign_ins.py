"""A storm of wrong passwords at the consoles of replicas, and one person who knows theirs."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from unittest import mock
from urllib.parse import urlencode

import msgspec
from argon2 import PasswordHasher

from petstore import config
from petstore.console.browser import csrf_token
from petstore.console.passwords import Passwords
from petstore.core.clock import Clock
from petstore.core.people import Role
from petstore.core.sign_ins import NEW_NETWORKS
from petstore.wiring.application import Application
from tests.support.console import HOST
from tests.support.journal import ACTOR
from tests.support.service import call

PASSWORD = "a dog, a cat and a bird"
HOME = "192.0.2.7"
_SECRET = "x" * 43
_AT_ONCE = 1_000  # of each replica: more would not get a connection
COMPARED = NEW_NETWORKS.attempts  # of the wrong passwords: none comes from HOME


class Storm(msgspec.Struct):
    """The outcome. `statuses`: of the wrong ones; `right`: of anna's, who tries again after a 503;
    `hashes`: how many passwords argon2 compared."""

    statuses: Counter[int]
    right: list[int]
    hashes: int

    def faults(self) -> list[str]:
        """The bounds that did not hold, and whether anna was kept out."""
        found = []
        compared_wrong = self.statuses[403]
        if compared_wrong > COMPARED or (compared_wrong < COMPARED and not self.statuses[503]):
            found.append(f"{compared_wrong} passwords were compared, and not {COMPARED}")
        if self.hashes > COMPARED + len(self.right):
            found.append(f"{self.hashes} hashes for {COMPARED} wrong and {len(self.right)} right ones")
        if set(self.statuses) - {403, 429, 503}:
            found.append(f"wrong ones were answered {dict(self.statuses)}")
        if not self.right or set(self.right) != {303}:
            found.append(f"the right ones were answered {self.right}")
        return found


@contextmanager
def compared() -> Iterator[list[str]]:
    """The passwords that argon2 compares meanwhile: each costs a hash."""
    passwords: list[str] = []
    verify = PasswordHasher.verify

    def recorded(hasher: PasswordHasher, stored: str, password: str, **options: Any) -> bool:
        passwords.append(password)
        return verify(hasher, stored, password, **options)

    with mock.patch.object(PasswordHasher, "verify", recorded):
        yield passwords


@asynccontextmanager
async def replicas(url: str, clock: Clock, count: int) -> AsyncIterator[list[Application]]:
    """Services on one database, in this process, each with its console."""
    settings = config.load(
        {"PETSTORE_DATABASE_URL": url, "PETSTORE_ACCESS_LOG": "off", "PETSTORE_LOG_LEVEL": "error"}
    )
    applications = [Application(settings, clock) for _ in range(count)]
    for application in applications:
        await application.start()
    try:
        yield applications
    finally:
        for application in applications:
            await application.stop()


async def storm(applications: Sequence[Application], tries: int, seed: int) -> Storm:
    """Send `tries` wrong passwords at once, in any order: a third for anna from one address, a third for her
    from as many addresses, a third for other names from one address. Anna signs in meanwhile from HOME.
    """
    store = applications[0].service.store
    link = await store.people.add("anna", Role.STAFF, ACTOR)
    await store.sign_ins.redeem(link.token, await Passwords().hash(PASSWORD), HOME)
    third = tries // 3
    wrong = [
        *[("anna", "198.51.100.1")] * third,
        *[("anna", f"2001:db8:{number >> 16:x}:{number & 0xFFFF:x}::1") for number in range(third)],
        *[(f"nobody-{number}", "203.0.113.5") for number in range(tries - 2 * third)],
    ]
    random.Random(seed).shuffle(wrong)
    places = asyncio.Semaphore(_AT_ONCE * len(applications))

    async def tries_once(number: int, name: str, address: str) -> int:
        async with places:
            return await sign_in(applications[number % len(applications)], name, "not the password", address)

    async def knows() -> list[int]:
        return [await _until_answered(application) for application in [*applications] * 3]

    with compared() as passwords:
        *statuses, right = await asyncio.gather(
            *(tries_once(number, name, address) for number, (name, address) in enumerate(wrong)), knows()
        )
    counted = Counter(status for status in statuses if isinstance(status, int))
    assert isinstance(right, list)
    return Storm(counted, right, len(passwords))


async def _until_answered(application: Application) -> int:
    """The status of a right one; a full service is asked again."""
    for _ in range(100):
        status = await sign_in(application, "anna", PASSWORD, HOME)
        if status != 503:
            return status
    return 503


async def sign_in(application: Application, name: str, password: str, address: str) -> int:
    """The status of a sign-in form that is sent once."""
    fields = {"name": name, "password": password, "next": "", "csrf": csrf_token(_SECRET)}
    headers = [
        ("host", HOST),
        ("cookie", f"petstore-form={_SECRET}"),
        ("content-type", "application/x-www-form-urlencoded"),
    ]
    answer = await call(application, "POST", "/console/sign-in", headers, urlencode(fields).encode(), address)
    return answer.status
