"""Webhooks from a client's call to its receiver, on a real server, by both clients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from petstore_client import Conflict, NotFound, Petstore, PreconditionFailed, WebhookWithSecret
from petstore_client.webhooks import verify
from standardwebhooks.webhooks import Webhook as StandardWebhook

from tests.client.kit import client_of
from tests.support.receiver import Receiver, receiving
from tests.support.server import Server, issue_key, running_server
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("client-deliveries")]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that delivers, shared by the tests of the module."""
    folder = tmp_path_factory.mktemp("deliveries")
    key = issue_key(folder / "petstore.db")
    with running_server(folder, access_log="off") as server:
        server.key = key
        yield server


@pytest.fixture
def petstore(server: Server, kind: str) -> Iterator[Any]:
    """A client of this kind with a key of the level write."""
    with client_of(kind, server.base_url, server.key) as petstore:
        yield petstore


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


def test_an_event_arrives_and_is_verified(petstore: Petstore, receiver: Receiver) -> None:
    """What the service sends is what `verify` and the package `standardwebhooks` take, and only of the types
    that were asked for. A test is sent at once, and its try comes back; an event can be sent again."""
    made = petstore.webhooks.create(receiver.address, types=["pet.created"], description="mirror")
    assert isinstance(made, WebhookWithSecret)
    tried = petstore.webhooks.test(made.id)
    assert tried is not None
    assert (tried.type, tried.status, tried.delivered, tried.fault) == ("webhook.test", 204, True, None)

    pet = petstore.pets.create(name="Rex \N{DOG FACE}", category_id=1)
    petstore.orders.place(pet.id)
    wait_for(lambda: len(receiver.got) == 2, "the event")
    events = [verify(body, headers, made.secret) for headers, body in receiver.got]
    assert events[0].id == tried.event_id
    assert (events[1].type, events[1].data["name"]) == ("pet.created", "Rex \N{DOG FACE}")
    for headers, body in receiver.got:
        StandardWebhook(made.secret).verify(body, headers)

    assert petstore.webhooks.redeliver(made.id, events[1].id) == events[1].id
    wait_for(lambda: len(receiver.got) == 3, "the event again")
    headers, body = receiver.got[2]
    assert (verify(body, headers, made.secret), body) == (events[1], receiver.got[1][1])
    wait_for(lambda: len([*petstore.webhooks.deliveries(made.id)]) == 3, "the tries")
    tries = [*petstore.webhooks.deliveries(made.id, page_size=1)]
    assert [each.event_id for each in tries] == [events[1].id, events[1].id, events[0].id]
    assert all(each.delivered and each.next_at is None for each in tries)
    first = petstore.webhooks.deliveries_page(made.id, limit=2)
    last = petstore.webhooks.deliveries_page(made.id, cursor=first.next_cursor)
    assert ([*first.items, *last.items], last.next_cursor) == (tries, None)
    petstore.webhooks.delete(made.id)


def test_a_try_that_failed_says_why_and_when_it_is_repeated(petstore: Petstore, receiver: Receiver) -> None:
    """A webhook that is not enabled gets nothing."""
    made = petstore.webhooks.create(f"{receiver.address}2", types=["pet.created"])
    petstore.pets.create(name="Rex", category_id=1)
    wait_for(lambda: bool([*petstore.webhooks.deliveries(made.id)]), "the try")
    tried = next(iter(petstore.webhooks.deliveries(made.id)))
    assert (tried.status, tried.delivered) == (404, False)
    assert tried.next_at is not None
    assert tried.next_at > tried.at
    assert petstore.webhooks.get(made.id).failing_since is not None

    ended = petstore.webhooks.update(made.id, enabled=False)
    assert (ended.enabled, ended.disabled_reason) == (False, "owner")
    with pytest.raises(Conflict):
        petstore.webhooks.test(made.id)
    with pytest.raises(Conflict):
        petstore.webhooks.redeliver(made.id, tried.event_id)
    petstore.webhooks.delete(made.id)


def test_a_former_secret_signs_too(petstore: Petstore, receiver: Receiver) -> None:
    """A receiver may change over whenever it likes within the day; a stranger's secret fits nothing."""
    made = petstore.webhooks.create(receiver.address)
    renewed = petstore.webhooks.rotate_secret(made.id)
    assert renewed.secret != made.secret
    assert petstore.webhooks.get(made.id).etag == made.etag
    assert petstore.webhooks.test(made.id) is not None
    headers, body = receiver.got[-1]
    assert len({verify(body, headers, each.secret).id for each in (made, renewed)}) == 1
    petstore.webhooks.delete(made.id)


def test_webhooks_are_listed_changed_and_removed(petstore: Petstore, receiver: Receiver, kind: str) -> None:
    """Only in the state that was seen, where `if_match` says so; none shows its secret again."""
    made = petstore.webhooks.create(receiver.address, idempotency_key=f"hook-{kind}")
    assert petstore.webhooks.create(receiver.address, idempotency_key=f"hook-{kind}").secret == made.secret
    assert [each.id for each in petstore.webhooks.list()] == [made.id]
    changed = petstore.webhooks.update(made.id, types=["order.*"], after="now", if_match=made.etag)
    assert changed == petstore.webhooks.get(made.id)
    assert (changed.types, changed.enabled, changed.created_at) == (("order.*",), True, made.created_at)
    with pytest.raises(PreconditionFailed):
        petstore.webhooks.delete(made.id, if_match=made.etag)
    petstore.webhooks.delete(made.id, if_match=changed.etag)
    for call in (petstore.webhooks.get, petstore.webhooks.delete, petstore.webhooks.test):
        with pytest.raises(NotFound):
            call(made.id)
