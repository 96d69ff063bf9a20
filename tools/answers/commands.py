"""Records the command line: help, and what a fixed script of commands prints and returns."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

_SOURCE = Path(__file__).parents[2] / "src"
# Each process of a command begins at this moment, whatever the machine's clock says.
START_MS = 1_795_251_600_000
_MASKS = (
    (r"pets_(live|test)_[0-9A-Za-z]{38}\b", r"pets_\1_<secret>"),
    (r"pets_(live|test)_…[0-9A-Za-z]{4}", r"pets_\1_…<end>"),
    (r"petstore_test_\d+_\d+", "<database>"),
    (r"commit [0-9a-f]{7,64}|commit unknown", "commit <commit>"),
)
# Where the database's server gives the time.
_MOMENT = (r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?Z", "<time>")
SCRIPT = """
db check
db migrate --dry-run
db migrate
db migrate --json
accounts add shop --plan pro
accounts add shop --plan pro
accounts add "" --plan pro
accounts add "bad\tname" --plan free
accounts add big --plan enterprise
accounts add big --plan enterprise --per-minute 0 --per-day 5
accounts add big --plan enterprise --per-minute x --per-day 5
accounts add big --plan enterprise --per-minute 1000 --per-day 9999999999
accounts add big --plan enterprise --per-minute 1000 --per-day 50000 --json
accounts add small --plan free --per-day 5
accounts add small --plan gold
accounts add small --plan free
accounts list
accounts list --json
accounts show shop
accounts show 2 --json
accounts show nobody
accounts show 99
accounts set-plan small --plan business
accounts set-plan small --plan enterprise --per-minute 5 --per-day 10 --json
accounts set-plan nobody --plan pro
keys issue shop --label web --expires 90d
keys issue shop --json
keys issue shop --label "a\tb"
keys issue shop --label nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn
keys issue shop --expires 0d
keys issue shop --expires soon
keys issue nobody
keys issue big --label robot
keys list shop
keys list shop --json
keys list nobody
keys list small
keys rotate 1
keys rotate 2 --overlap 1h --json
keys rotate 1
keys rotate 99
keys rotate x
keys revoke 3
keys revoke 3
keys revoke 2 --json
keys revoke 99
keys unban 1
keys unban 1 --json
keys unban 99
keys check
keys list shop --json
keys list 1
keys issue shop --access read --json
keys issue shop --access admin
keys show 1
keys show 99
bans
bans --json
accounts suspend small
accounts suspend small --json
accounts resume small
accounts rename small little
accounts rename little shop
accounts close little
accounts resume little
keys issue little
accounts list
pets list
pets add Rex --category 1
pets add "Mia é" --category 2 --status pending --json
pets add "" --category 1
pets add Rex --category x
pets add Rex --category 9223372036854775808
pets add Rex
pets add Tom --category -5 --status lost
pets add Tom --category -5
pets set 1 --status sold
pets set 1 --status sold
pets set 1 --status available --json
pets set 2 --status sold --json
pets set 99 --status sold
pets set 1 --status lost
pets set 1 --name "Rex II" --category 3
pets set 1
pets show 1
pets remove 99
pets remove 1 --json
journal --about pet:1
journal --about pet:1 --json
journal --about pet:99
journal --about pet
pets list
pets list --json
pets list --status sold --limit 1
pets list --after 2 --json
pets list --limit 0
pets list --limit 10001
pets list --after x
usage shop
usage big --json
usage nobody
db check
db check --json
db backup backup.db
db backup backup.db
db backup second.db --json
db backup nowhere/backup.db
db restore nothing.db
db restore backup.db
db restore backup.db --into restored.db --json
db copy sqlite:///petstore.db sqlite:///other.db
limits check
serve --port 0x
nonsense
accounts nonsense
accounts
completion bash
completion zsh
completion fish
completion tcsh
"""
_ODD_SETTINGS: tuple[dict[str, str], ...] = (
    {},
    {"PETSTORE_PORT": "9000", "PETSTORE_BASE_URL": "https://pets.example/v1", "PETSTORE_ENVIRONMENT": "test"},
    {"PETSTORE_PORT": "x", "PETSTORE_DRAIN": "soon", "PETSTORE_NOTHING": "1"},
    {"PETSTORE_WORKERS": "2"},
    {"PETSTORE_DATABASE_URL": "mysql://u:hush@h/x"},
    {"PETSTORE_DATABASE_URL": "postgresql://u:hush@h/x", "PETSTORE_VALKEY_URL": "valkey://:hush@h"},
    {
        "PETSTORE_BASE_URL": "pets.example",
        "PETSTORE_BAN_DURATIONS": "1m,x",
        "PETSTORE_TRUSTED_PROXIES": "x/33",
    },
    {"PETSTORE_REMOVAL_DATE": "2020-01-01", "PETSTORE_CORS_ORIGINS": "a.example"},
)


class Commands:
    """Runs commands of the program that this interpreter imports, in an environment of their own."""

    def __init__(
        self, environment: dict[str, str], folder: Path | None = None, *, hides_moments: bool = False
    ) -> None:
        kept = {name: text for name, text in os.environ.items() if not name.startswith("PETSTORE_")}
        self._environment = {**kept, "COLUMNS": "100", "LC_ALL": "C.UTF-8", **environment}
        self._folder = folder
        self._masks = (*_MASKS, _MOMENT) if hides_moments else _MASKS
        self._program = [sys.executable, "-c", "from petstore.cli.main import main; main()"]

    def run(self, line: str) -> tuple[int, str, str]:
        """Exit code, standard output and standard error of one line."""
        done = subprocess.run(
            [*self._program, *shlex.split(line)],
            env=self._environment,
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        return done.returncode, done.stdout, done.stderr

    def told(self, line: str) -> str:
        """What one line does, as text without secrets and moments."""
        code, out, err = self.run(line)
        text = f"$ petstore {line!r}\nexit code {code}\n" + _marked("|", out) + _marked("!", err)
        for pattern, replacement in self._masks:
            text = re.sub(pattern, replacement, text)
        return text.replace(str(self._folder), "<folder>")


def _marked(mark: str, text: str) -> str:
    return "".join(f"{mark} {line}\n" for line in text.splitlines())


def help_pages(commands: Commands, path: str = "") -> Iterator[str]:
    """The help of the program, and of every command below it."""
    page = commands.told(f"{path} --help".strip())
    yield page
    rows = page.partition("Commands:\n")[2].partition("\n| \n")[0]
    for name in re.findall(r"^\|   ([a-z][a-z-]*)", rows, re.M):
        yield from help_pages(commands, f"{path} {name}".strip())


def steered(folder: Path, now_ms: int) -> dict[str, str]:
    """Variables with which each command believes that it is now this moment."""
    (folder / "sitecustomize.py").write_text(f"import time\ntime.time_ns = lambda: {now_ms}_000_000\n")
    return {"PYTHONPATH": os.pathsep.join([str(folder), str(_SOURCE)]), "PYTHONDONTWRITEBYTECODE": "1"}


def record(folder: Path, postgres_url: str) -> None:
    """Write a file for each: the contract, help, settings, and the script on both databases."""
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        base = steered(work, START_MS)
        plain = Commands(base, work)
        (folder / "openapi.json").write_text(plain.run("openapi --json")[1])
        (folder / "openapi.yaml").write_text(plain.run("openapi")[1])
        (folder / "help.txt").write_text("\n".join([plain.told("--version"), *help_pages(plain)]))
        shown = [
            f"{settings}\n" + Commands({**base, **settings}, work).told(line)
            for settings in _ODD_SETTINGS
            for line in ("config", "config --json")
        ]
        shown.append(Commands({**base, **_ODD_SETTINGS[1]}, work).told("openapi --json"))
        (folder / "config.txt").write_text("\n".join(shown))
        for backend, url in (("sqlite", "sqlite:///petstore.db"), ("postgres", postgres_url)):
            commands = Commands(
                {**base, "PETSTORE_DATABASE_URL": url}, work, hides_moments=backend == "postgres"
            )
            text = "\n".join(commands.told(line) for line in SCRIPT.strip().splitlines())
            (folder / f"commands-{backend}.txt").write_text(text.replace(url, "<url>"))
