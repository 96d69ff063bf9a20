"""Production and staging: whose keys each takes, and how an answer says which one it is from."""

from __future__ import annotations

from pathlib import Path

import pytest

from petstore.core.keys import mint
from petstore.core.limits.plans import FREE
from petstore.core.people import Role
from tests.support.console import Visitor
from tests.support.journal import ACTOR
from tests.support.service import Shop, open_shop

PRODUCTION, STAGING = "https://api.example.com/v1", "https://staging.example.com/v1"
OWN = {"production": "live", "staging": "test"}


async def key_of(shop: Shop, environment: str) -> str:
    """A key of a new account, which is in this shop's database, whatever its prefix."""
    await shop.store.accounts.add(environment, FREE, ACTOR)
    return str((await shop.store.keys.issue(environment, environment, ACTOR)).secret)


@pytest.mark.parametrize(
    ("stage", "other", "there"),
    [("production", "staging", STAGING), ("staging", "production", PRODUCTION)],
)
async def test_a_key_of_the_other_stage(tmp_path: Path, stage: str, other: str, there: str) -> None:
    """401 that names the right base address, for a key that the database knows and for any other; its own
    works. It counts as a failed authentication, and no query is made for it."""
    async with open_shop(
        tmp_path, stage=stage, staging_base_url=STAGING, production_base_url=PRODUCTION
    ) as shop:
        own, foreign = await key_of(shop, OWN[stage]), await key_of(shop, OWN[other])
        reads = shop.application.service.api._gate.key_reads
        for key in (foreign, mint(OWN[other])):
            answer = await shop.ask("GET", "/v1/pets", key=key)
            assert (answer.status, answer.code) == (401, "unauthorized")
            assert answer.json()["message"] == (
                f"This key is for {other}, but this service is {stage}. Use it at {there}, or send a"
                f" pets_{OWN[stage]}_ key."
            )
        assert answer.headers["x-ratelimit-remaining"] == "598"
        assert shop.application.service.api._gate.key_reads == reads
        assert (await shop.ask("GET", "/v1/pets", key=own)).status == 200
        metrics = (await shop.call("GET", "/metrics")).body.decode()
        assert 'petstore_unauthorized_total{cause="foreign"} 2.0' in metrics
        assert f'stage="{stage}"' in metrics


async def test_a_damaged_key_of_the_other_stage(tmp_path: Path) -> None:
    """What is not a key gets the message for that: the prefix alone is not a credential."""
    async with open_shop(tmp_path, stage="production") as shop:
        answer = await shop.ask("GET", "/v1/pets", key=mint("test")[:-1] + "!")
        assert answer.json()["message"].startswith("The API key is missing or invalid")
        answer = await shop.ask("GET", "/v1/pets", key=mint("test"))
        assert answer.json()["message"] == (
            "This key is for staging, but this service is production. Send a pets_live_ key."
        )


@pytest.mark.parametrize(("stage", "said"), [("staging", "staging"), ("production", None), ("", None)])
async def test_answers_of_staging_say_so(tmp_path: Path, stage: str, said: str | None) -> None:
    """X-Environment is on each answer of staging, of the interface, of pages and of documents, and on no
    other; pages and the contract show where they are, too."""
    async with open_shop(tmp_path, stage=stage) as shop:
        for method, target in (
            ("GET", "/v1/pets"), ("GET", "/v1/none"), ("PUT", "/v1/pets"), ("OPTIONS", "/v1/pets"),
            ("GET", "/docs"), ("GET", "/none"), ("GET", "/openapi.json"), ("GET", "/healthz"),
            ("GET", "/console/sign-in"),
        ):  # fmt: skip
            answer = await shop.ask(method, target)
            assert answer.headers.get("x-environment") == said, (method, target)
        guide = (await shop.call("GET", "/docs/guide", [("accept", "text/html")])).body.decode()
        prefixes = {text[-10:] for text in guide.split("YourOwnKeyStandsHere")[:-1]}
        assert prefixes == {"pets_test_" if said else "pets_live_"}
        for page in ("/docs", "/console/sign-in"):
            shown = (
                await shop.call("GET", page, [("accept", "text/html"), ("host", "127.0.0.1")])
            ).body.decode()
            assert ('<p class="staging">' in shown) is (said is not None), page
            assert ("· Staging</title>" in shown) is (said is not None), page


@pytest.mark.parametrize("stage", ["", "production", "staging"])
async def test_the_contract_has_both_addresses(tmp_path: Path, stage: str) -> None:
    """A service's own address is the first (specification, Environments)."""
    expected = [(PRODUCTION, "Production"), (STAGING, "Staging")]
    if stage == "staging":
        expected.reverse()
    bases = {"base_url": expected[0][0], "staging_base_url": STAGING, "production_base_url": PRODUCTION}
    async with open_shop(tmp_path, None, stage=stage, **bases) as shop:
        servers = (await shop.call("GET", "/openapi.json")).json()["servers"]
        assert [(each["url"], each["description"]) for each in servers] == expected


async def test_cookies_of_both_on_one_machine(tmp_path: Path) -> None:
    """Cookies ignore ports: staging's console, its form and its session, sets other ones."""
    names = []
    for stage in ("production", "staging"):
        folder = tmp_path / stage
        folder.mkdir()
        async with open_shop(folder, stage=stage) as shop:
            anna, words = Visitor(shop), "four pets and a fish"
            link = (await shop.store.people.add("anna", Role.STAFF, ACTOR)).token
            page = await anna.get(f"link/{link}")
            names.append(set(anna.cookies))
            assert (await anna.submit(page, "", password=words, again=words)).address == "/console"
            names[-1] |= set(anna.cookies)
    assert names[0] >= {"petstore-form", "petstore-session"}
    assert names[1] >= {"petstore-form-staging", "petstore-session-staging"}
    assert names[0].isdisjoint(names[1])
