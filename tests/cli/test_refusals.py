"""What commands refuse: a row for each fault, with a part of the one line that explains it.

What is wrong usage beyond that: the core's own checks. Refusals of `db` are in test_db.py.
"""

from __future__ import annotations

import shlex

import pytest

from petstore.core.keys import mint
from petstore.core.limits.plans import FREE
from petstore.core.pets import NewPet, PetStatus
from petstore.wiring.administration import Store
from tests.cli.conftest import Cli
from tests.cli.test_root import LEAVES
from tests.cli.test_serve import ELSEWHERE, example
from tests.support.failing_webhooks import URL, add_webhook
from tests.support.journal import ACTOR

BOTH_NUMBERS = "needs both agreed numbers"
_OF_AN_ACCOUNT = ("show", "set-plan", "suspend", "resume", "close")
CONTACTS = ("accounts contacts shop", "people contacts anna")
ELEVEN = " ".join(f"--email a{number}@zoo" for number in range(11))
WRONG_USAGE = [
    ("key", "Did you mean 'keys'? Try 'petstore --help'."),
    ("nothing-like-it", "Try 'petstore --help'."),
    ("--nix", "'--nix'"),
    ("accounts lst", "No such command 'lst'"),
    ("accounts add --nix", "Try 'petstore accounts add --help'."),
    ("accounts add shop", "free, pro, business, enterprise. Try 'petstore accounts add --help'"),
    ("accounts add shop --plan gold", "'enterprise'"),
    ("accounts add 12 --plan free", "can't name an account"),
    ("accounts add 'a\x1b[31m' --plan free", "can't name an account"),
    ("accounts add zoo --plan enterprise", BOTH_NUMBERS),
    ("accounts add zoo --plan enterprise --per-minute 5", BOTH_NUMBERS),
    ("accounts add zoo --plan enterprise --per-day 5", BOTH_NUMBERS),
    ("accounts add zoo --plan pro --per-day 5", "fixed limits"),
    ("accounts add zoo --plan enterprise --per-day 5 --per-minute 0", "'--per-minute': '0' is not a whole"),
    ("accounts add zoo --plan enterprise --per-minute 5 --per-day 1000000001", "from 1 to 1000000000"),
    ("accounts set-plan shop --plan enterprise --per-day 5", BOTH_NUMBERS),
    *((f"accounts {command} '\x1b'", "neither the name nor the id") for command in _OF_AN_ACCOUNT),
    ("accounts rename shop 12", "can't name an account"),
    *((f"keys {command} '\x1b'", "neither the name nor the id") for command in ("issue", "list")),
    *((f"usage {account}", "neither the name nor the id") for account in ("'\x1b'", "''", "\udcff")),
    ("keys issue shop --label 'a\nb'", "'--label'"),
    # A key that never worked, or one beyond the calendar.
    *((f"keys issue shop --expires {text}", "'--expires'") for text in ("0", "1", "1w", "36501d")),
    ("keys list --foreign shop", "Name an account, or give --foreign."),
    ("keys list", "Name an account, or give --foreign."),
    ("keys rotate 1 --overlap x", "'--overlap'"),
    *((f"keys {command} 0", "'KEY_ID'") for command in ("show", "rotate", "revoke", "unban")),
    ("keys issue shop --access admin", "'manage'"),
    # Other processes see arguments, and shells keep them: a key never is one.
    ("keys check pets_live_x", "unexpected extra argument"),
    ("keys check", "petstore keys check < FILE"),
    ("pets add Rex", "--category"),
    ("pets add Rex --category 9223372036854775808", "'--category'"),
    ("pets add 'a\x9b31m' --category 1", "Invalid value for 'NAME': control characters"),
    # What a terminal in Latin-1 sends: its bytes come as surrogates, of which nobody has typed one.
    ("pets add 'Zo\udceb' --category 1", "it is not UTF-8; set the terminal"),
    *((f"pets list --limit {number}", "'--limit'") for number in (0, 10_001)),
    ("pets list --status AVAILABLE", "'pending'"),
    ("pets list --after 0", "'--after'"),
    ("pets list --category 1.0", "'--category'"),
    ("categories name x Dogs", "'ID'"),
    ("categories name 1", "Give either NAME or --remove"),
    ("categories name 1 Dogs --remove", "Give either NAME or --remove"),
    ("categories name -- -1 --remove", "--remove does nothing after `--`: put it before."),
    ("pets add -- -x --category=1", "--category does nothing after `--`: put it before."),
    ("categories name 1 ''", "expected 1 to 100 characters, got 0"),
    # `int()` would bend some of them into a number.
    *(
        (f"pets show {text}", "is not a whole number from 1 to 9223372036854775807")
        for text in ("0", "''", "1.0", "1e3", "+1", "01", "1_0", "' 1'", "\u0661", "9223372036854775808")
    ),
    ("pets remove x", "'ID'"),
    ("pets set 0 --status sold", "'ID'"),
    ("pets set 1 --status gone", "'pending'"),
    ("pets set 1", "give --name, --category, --status, --price or --note"),
    ("pets set 1 --name ''", "Invalid value for '--name'"),
    ("pets set 1 --category 1.0", "'--category'"),
    ("journal --about pet", "write store, pet:7, order:5,"),
    *((f"journal --about {what}", "names nothing") for what in ("pet:0", "pet:07", "key:shop", "store:1")),
    ("journal --about category:9223372036854775808", "names nothing"),
    ("journal --about account:", "names nothing"),
    *((f"journal --actor {who}", "names nobody") for who in ("''", "\udcff")),
    ("journal --since yesterday", "'yesterday' is not a time; write it as 2h, 2026-10-01 or 2026-10-01T"),
    ("journal --since 2026-02-30", "is not a time"),
    ("journal --limit 10001", "'--limit'"),
    ("journal --before 0", "'--before'"),
    *((f"events --after {text}", "is not a bookmark: write") for text in ("''", "7", "evt_0f3a9c2b5d7e_1")),
    ("events --type pets", "expected pet.*, "),
    ("webhooks enable 1 --after evt_0f3a9c2b5d7e_1", "is not a bookmark: write now"),
    ("events --limit 10001", "'--limit'"),
    ("db backup no/x.db", "There is no directory"),
    ("db backup .", "is a directory"),
    ("db restore none.db", "does not exist"),
    ("serve --workers x", "'x' is not a whole number from 1 to 256."),
    ("accounts add zoo --plan free --email zoo", "'--email': 'zoo' is not an email address. Write one"),
    ("accounts add zoo --plan free --email a@zoo --email a@zoo", "'--email': a@zoo is there twice."),
    (f"accounts add zoo --plan free {ELEVEN}", "'--email': at most 10 contacts, got 11."),
    (
        "people add anna --role staff --email 'a\nb@zoo'",
        "Invalid value for '--email': 'a\\nb@zoo' is not an email address",
    ),
    ("accounts contacts '\x1b'", "neither the name nor the id"),
    ("people contacts 7", "can't name a person"),
    ("people contacts anna --off plan.changed", "'--off': 'plan.changed' is not one of 'order.created', "),
    ("accounts contacts shop --on list.finished", "'--on': 'list.finished' is not one of 'key.expiring', "),
    *((f"{line} anna", "'anna' is not an email address") for line in (*CONTACTS, "notifications test")),
    *((f"{line} --add", "Say which ADDRESS --add, --remove, --off or --on is for.") for line in CONTACTS),
    ("people contacts anna --off order.created", "Say which ADDRESS"),
    *((f"{line} a@zoo --add --remove", "Give either --add or --remove.") for line in CONTACTS),
    *(
        (f"people contacts anna a@zoo --remove --{way} order.created", "leave out --off")
        for way in ("off", "on")
    ),
    (
        "people contacts anna a@zoo --off order.created --on order.created",
        "order.created is given to --off and to --on: leave out one.",
    ),
    ("completion csh", "'bash', 'zsh', 'fish'"),
]
CLOSED = "Account 'closed' is closed for good; add another account."
NO_ACCOUNT = "There is no account 'nobody'; `petstore accounts list` shows them."
NO_KEY = "There is no key 9; `petstore keys list ACCOUNT` shows them."
NO_PET = "There is no animal 9; `petstore pets list` shows them."
NO_CONTACT = "shop has no contact a@zoo; `petstore accounts contacts shop` shows them."
REFUSED = [
    ("accounts add shop --plan free", "There is an account 'shop' already"),
    ("accounts show nobody", NO_ACCOUNT),
    ("accounts set-plan nobody --plan free", NO_ACCOUNT),
    *((f"accounts {command} nobody", NO_ACCOUNT) for command in ("suspend", "resume", "close")),
    ("accounts rename nobody zoo", NO_ACCOUNT),
    ("accounts rename closed shop", "There is an account 'shop' already"),
    ("accounts suspend closed", CLOSED),
    ("accounts resume closed", CLOSED),
    ("accounts set-plan closed --plan pro", CLOSED),
    ("accounts contacts nobody", NO_ACCOUNT),
    ("accounts contacts nobody a@zoo --add", NO_ACCOUNT),
    ("accounts contacts shop a@zoo", NO_CONTACT),
    ("accounts contacts shop a@zoo --remove", NO_CONTACT),
    ("accounts contacts shop a@zoo --off plan.changed", NO_CONTACT),
    ("accounts contacts shop c@zoo --add", "c@zoo is a contact of shop already."),
    ("accounts contacts closed c@zoo --add", CLOSED),
    ("people contacts anna", "There is no person 'anna'; `petstore people list` shows them."),
    ("keys issue closed", CLOSED),
    ("keys issue nobody", NO_ACCOUNT),
    ("keys list nobody", NO_ACCOUNT),
    ("usage nobody", NO_ACCOUNT),
    ("usage nobody --month 2026-12", NO_ACCOUNT),
    ("keys show 9", NO_KEY),
    ("keys rotate 9", NO_KEY),
    ("keys revoke 9", NO_KEY),
    ("keys unban 9", NO_KEY),
    ("keys rotate 2", "Key 2 is revoked; issue a new key instead."),
    ("keys rotate 3", "Key 3 is expired; issue a new key instead."),
    ("keys rotate 4", "Key 4 was replaced by key 5 on 2027-01-15; rotate that one"),
    ("pets show 9", NO_PET),
    ("categories name 9 --remove", "Category 9 has no name; `petstore categories list` shows them."),
    ("pets set 9 --status sold", NO_PET),
    ("pets remove 9", NO_PET),
    ("journal --about account:nobody", NO_ACCOUNT),
    ("events --account nobody", NO_ACCOUNT),
    ("journal --about account:9", "There is no account '9'"),
    ("pets set 3 --status pending", "it can become available, not pending"),
]
# These make a database, or begin with something else that is missing.
OTHERS = {"serve", "db migrate", "db restore", "pets import", "staging refresh", "staging reset"}
FURTHER = ("db check", "db backup x.db", "categories name 1 --remove", "people contacts anna a@zoo --add")


@pytest.fixture
def here(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """An empty directory, which is the working directory too."""
    monkeypatch.chdir(cli.folder)
    return cli


def test_wrong_usage_exits_with_2_and_makes_nothing(here: Cli) -> None:
    """Exit code 2, one line, and nothing is made: no database and no key."""
    for line, message in WRONG_USAGE:
        assert message in here.refused(2, *shlex.split(line)), line
        assert list(here.folder.iterdir()) == [], line


def test_without_a_database_nothing_is_made(here: Cli) -> None:
    """What needs something that is there says that there is no database, and leaves none behind: each
    command, as its example has it."""
    for line in (*map(example, set(LEAVES) - ELSEWHERE - OTHERS), *FURTHER):
        refused = here.refused(1, *shlex.split(line), stdin=mint("live"))
        assert f"There is no database {here.database}" in refused, line
        assert list(here.folder.iterdir()) == [], line


def test_a_refusal_exits_with_1_and_changes_nothing(shop: Cli) -> None:
    """Exit code 1, one line, and no byte of the database changes."""

    async def fill(store: Store) -> None:
        for _ in range(2):
            await store.keys.issue("shop", "live", ACTOR)
        await store.keys.revoke(2, ACTOR)
        await store.keys.issue("shop", "live", ACTOR, expires_at_ms=1)
        await store.keys.issue("shop", "live", ACTOR)
        await store.keys.rotate(4, "live", 0, ACTOR)
        await store.contacts.add("account", "shop", "c@zoo", ACTOR)
        await store.accounts.add("closed", FREE, ACTOR)
        await store.accounts.close("closed", ACTOR)
        for status in PetStatus:
            await store.pets.add(NewPet("Rex", 1, status), ACTOR)

    shop.with_store(fill)
    before = shop.database.read_bytes()
    for line, message in REFUSED:
        assert message in shop.refused(1, *line.split(" ")), line
        assert shop.database.read_bytes() == before, line


@pytest.mark.parametrize("agreed", [("y\n",), ("", "--yes")], ids=["y", "--yes"])
@pytest.mark.parametrize(
    ("line", "question"),
    [
        ("accounts close shop", "plan pro, active) has 2 active keys. Close it for good? [y/N]:"),
        ("pets remove 1", "Remove 1  Rex  category 1  available? [y/N]"),
        ("webhooks disable 1", f"Webhook 1 of account 'shop' is {URL}. Disable it? [y/N]"),
        ("db mark-restored", "petstore.db restored? "),
    ],
)
def test_a_person_is_asked(
    shop: Cli, monkeypatch: pytest.MonkeyPatch, line: str, question: str, agreed: tuple[str, ...]
) -> None:
    """A person on a terminal is asked about what the command names; any answer but yes ends with 1, and no
    byte changes. With --yes nobody is asked."""
    monkeypatch.setattr(f"petstore.cli.{line.partition(' ')[0]}.asks", lambda yes: not yes)
    for _ in range(2):
        shop.issue("shop")
    shop.ok("pets", "add", "Rex", "--category", "1")
    shop.with_store(lambda store: add_webhook(store, 1))
    before = shop.database.read_bytes()
    for (answer, *words), code in ((["n\n"], 1), (["\n"], 1), (agreed, 0)):
        asked = shop.run(*line.split(), *words, stdin=answer)
        assert (asked.exit_code, question in asked.stderr) == (code, not words), asked.stderr
        assert ("Nothing was changed." in asked.stderr) is (code == 1)
        assert (shop.database.read_bytes() == before) is (code == 1)


def test_a_key_given_for_its_id_is_not_repeated(shop: Cli) -> None:
    """Whoever confuses the two must not find the key in a log."""
    key, _ = shop.issue("shop")
    line = shop.refused(2, "keys", "revoke", key)
    assert key[:12] not in line
    assert "pets_live_…" in line
