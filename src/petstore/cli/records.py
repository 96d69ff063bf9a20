"""Accounts, keys and webhooks as commands show them: records as in JSON, and fields for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from petstore.cli.output import moment
from petstore.core.accounts import Account
from petstore.core.keys import ApiKey
from petstore.core.limits.plans import WINDOWS
from petstore.core.webhooks import Webhook, members_of

if TYPE_CHECKING:
    from petstore.wiring.administration import Store

# Headings of a table, and their members.
LIMIT_HEADINGS = {f"PER {window.name.upper()}": window.limit_member for window in WINDOWS}


def account_record(account: Account) -> dict[str, object]:
    """An account's members."""
    return {
        "id": account.id,
        "name": account.name,
        **account.plan.members(),
        "state": account.state,
        "createdAt": moment(account.created_at_ms),
    }


def account_fields(account: Account) -> dict[str, object]:
    """An account's fields."""
    plan = account.plan
    return {
        "account": f"{account.name} (id {account.id})",
        "plan": f"{plan.name}: {', '.join(plan.phrases())}",
        "state": account.state,
        "created": moment(account.created_at_ms),
    }


def key_record(key: ApiKey, now_ms: int) -> dict[str, object]:
    """A key's members; never its text."""
    return {
        "id": key.id,
        "display": key.display,
        "label": key.label,
        "access": key.access,
        "state": key.state(now_ms),
        "createdAt": moment(key.created_at_ms),
        "expiresAt": moment(key.expires_at_ms),
        "lastUsedAt": moment(key.last_used_at_ms),
    }


class KeyDetails(msgspec.Struct, frozen=True):
    """A key, its account, and until when it is banned."""

    key: ApiKey
    account: Account
    banned_until_ms: int | None

    @property
    def ban(self) -> str:
        return "none" if self.banned_until_ms is None else f"until {moment(self.banned_until_ms)}"


async def details_of(store: Store, key: ApiKey, now_ms: int) -> KeyDetails:
    account = await store.accounts.get(key.account_id)
    bans = await store.usage.bans_of(now_ms, [key.id])
    return KeyDetails(key, account, bans[0].banned_until_ms if bans else None)


def key_fields(details: KeyDetails, now_ms: int) -> dict[str, object]:
    """The fields that identify a key."""
    key, account = details.key, details.account
    state = "" if account.state == "active" else f", {account.state}"
    return {
        "account": f"{account.name} (id {account.id}){state}",
        "key": f"{key.id} ({key.display})",
        "label": key.label or "-",
        "access": key.access,
        "state": key.state(now_ms),
        "created": moment(key.created_at_ms),
        "expires": moment(key.expires_at_ms),
    }


def webhook_record(webhook: Webhook, account: str) -> dict[str, object]:
    """A webhook's members; never its secrets."""
    members = members_of(webhook)
    return {
        "id": members.pop("id"),
        "account": account,
        **members,
        "state": webhook.state,
        "failingSince": moment(webhook.failing_since_ms),
        "createdAt": moment(webhook.created_at_ms),
    }


def webhook_fields(webhook: Webhook, account: str) -> dict[str, object]:
    """A webhook's fields."""
    reason = "" if webhook.disabled is None else f" ({webhook.disabled})"
    return {
        "webhook": webhook.id,
        "account": account,
        "url": webhook.url,
        "types": ", ".join(webhook.types),
        "description": webhook.description or "-",
        "state": f"{webhook.state}{reason}",
        "failing since": moment(webhook.failing_since_ms),
        "key": webhook.key_id,
        "created": moment(webhook.created_at_ms),
    }
