"""`petstore notifications`: mail to contacts: its kinds, what waits, and a test of the settings."""

from __future__ import annotations

import click

from petstore.cli.context import Session, read_store
from petstore.cli.groups import LazyGroup
from petstore.cli.output import Record, echo_err, moment, write_record, write_records
from petstore.cli.types import checked
from petstore.core.contacts import check_address
from petstore.core.durations import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, format_duration
from petstore.core.mails import LATE_MS, Mail
from petstore.core.notifications import KINDS


@click.group(cls=LazyGroup)
def notifications() -> None:
    """Mail to contacts: its kinds, what waits, and a test.

    Contacts are in `petstore accounts contacts` and `petstore people contacts`.
    """


@notifications.offers("kinds", "petstore notifications kinds")
def list_kinds(_session: Session, as_json: bool) -> None:
    """List every kind of mail, who takes it, and what it is about.

    Contacts of an account get mail of that account alone.
    """
    write_records(
        [{"name": kind.name, "to": kind.to, "about": kind.what} for kind in KINDS],
        {"KIND": "name", "CONTACTS OF": "to", "ABOUT": "about"},
        as_json,
        empty="",
    )


@notifications.offers("list", "petstore notifications list", "petstore notifications list --json")
def list_mails(session: Session, as_json: bool) -> None:
    """List the mails that wait, the first that are due.

    A mail waits a minute for more facts of its kind. One that the server did not take is tried again, for
    four days; its contact shows why. At most 100 are shown, and standard error says how many more there are,
    and when mail is late.
    """
    mails, count = read_store(session, lambda store: store.notifications.mails())
    now_ms = session.clock.now_ms()
    ages = {str(mail.id): _age(now_ms - mail.created_at_ms) for mail in mails}
    write_records(
        [_record(mail) for mail in mails],
        {
            "ID": "id",
            "KIND": "kind",
            "TO": "address",
            "OF": "of",
            "FACTS": "facts",
            "TRIES": "tries",
            "DUE": "dueAt",
            "AGE": lambda record: ages[str(record["id"])],
        },
        as_json,
        empty="No mail waits.",
    )
    if count > len(mails):
        echo_err(f"There are {count - len(mails):,} more.")
    if mails and now_ms - mails[0].due_ms > LATE_MS:
        echo_err(
            "Mail is late. The service's log says why: “mail waits”; `petstore notifications test ADDRESS`"
            " tries the settings."
        )


@notifications.offers("test", "petstore notifications test anna@example.com")
@click.argument("address", callback=checked(check_address))
def send_test(session: Session, address: str, as_json: bool) -> None:
    """Send a mail at once, by the settings.

    Needs PETSTORE_SMTP_URL and PETSTORE_MAIL_FROM, and neither a database nor a running server. Exit code 75
    where trying again may help, 78 where a setting is wrong, 1 where the server refuses this mail.
    """
    import asyncio  # help does without it

    from petstore.wiring import mail

    server = asyncio.run(mail.send_test(session.settings, address, session.clock))
    advice = "If it does not arrive, look among spam, then in the log of that server."
    text = f"{server} took the mail to {address}. {advice}"
    write_record({"server": server, "address": address}, text, as_json)


def _record(mail: Mail) -> Record:
    return {
        "id": mail.id,
        "kind": mail.kind,
        "address": mail.address,
        "of": mail.owner_name,
        "facts": mail.count,
        "tries": mail.tries,
        "createdAt": moment(mail.created_at_ms),
        "dueAt": moment(mail.due_ms),
    }


def _age(ms: int) -> str:
    """An age in whole days, hours, minutes or seconds."""
    size = next((size for size in (DAY_MS, HOUR_MS, MINUTE_MS) if ms >= size), SECOND_MS)
    return format_duration(max(ms // size, 1) * size)
