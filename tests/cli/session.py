"""Plays sessions: runs each command of a file, puts what it prints under it.

A test holds the file to that. `python -m tests.cli.session` writes it anew; read what changed.
"""

from __future__ import annotations

import os
import pwd
import re
import shlex
import tempfile
from pathlib import Path

from click.testing import CliRunner

from petstore.cli.context import Session, with_store
from petstore.cli.main import petstore
from petstore.core.durations import DAY_MS
from petstore.core.limits.bans import BanState
from petstore.core.limits.counters import LimiterState
from petstore.core.limits.usage import DailyUsage, UsageChanges
from tests.support.clock import ManualClock
from tests.support.windows import used_of

PLAYED = Path(__file__).with_name("sessions.txt")
SERVER_AT_WORK = "<!-- A server has been at work. -->"
ALICE = pwd.struct_passwd(("alice", "x", 1_000, 1_000, "", "/", "/bin/sh"))
_START_MS = 1_795_251_600_000  # 2026-11-21 09:00 UTC
_LINE = re.compile(
    r"(?P<before>(?:PETSTORE_\w+=\S+ )*)(?:echo (?P<said>\S+) \| )?petstore (?P<arguments>[^|<>]+?)"
    r"(?: \| (?P<cut>head|tail) -(?P<lines>\d+))?(?: < (?P<read>\S+))?(?: > (?P<write>\S+))?"
)


class Shell:
    """A shell as far as the sessions need one: variables, one redirection, head, tail and $?."""

    def __init__(self) -> None:
        self.clock = ManualClock(_START_MS)
        self.code = 0

    def run(self, line: str) -> str:
        """What a terminal shows for a line."""
        if line == "echo $?":
            return f"{self.code}\n"
        match = _LINE.fullmatch(line)
        assert match, f"not understood: {line}"
        variables = dict(part.split("=", 1) for part in match["before"].split())
        stdin = match["said"] or (Path(match["read"]).read_text() if match["read"] else "")
        result = CliRunner(env=variables).invoke(
            petstore, shlex.split(match["arguments"]), stdin, obj=Session(self.clock), prog_name="petstore"
        )
        self.code = result.exit_code
        self.clock.advance(1)
        if match["write"]:
            Path(match["write"]).write_text(result.stdout)
            return result.stderr
        if match["cut"]:
            lines = result.stdout.splitlines(keepends=True)
            count = int(match["lines"])
            return "".join(lines[:count] if match["cut"] == "head" else lines[-count:]) + result.stderr
        return result.output

    def serve(self) -> None:
        """What a server has written meanwhile: half a plan used, and a ban for key 2."""
        now_ms = self.clock.now_ms()
        day = now_ms // DAY_MS
        state = LimiterState(
            {1: used_of((now_ms, 417), (day, 52_118))},
            {2: BanState(level=1, banned_from_ms=now_ms, banned_until_ms=now_ms + 60_000)},
        )
        days = {(1, day): DailyUsage(day, 52_118, 1_204, 0), (1, day - 1): DailyUsage(day - 1, 61_530, 0, 77)}
        used = UsageChanges(days, {2: now_ms})
        with_store(Session(self.clock), lambda store: store.counters.save(state, used))


def play(text: str) -> str:
    """The text with the output of its sessions as it is today. Runs in the working directory."""
    shell = Shell()
    played = []
    in_session = False
    for line in text.splitlines():
        if line == SERVER_AT_WORK:
            shell.serve()
        if line == "```" and in_session:
            in_session = False
        if not in_session:
            played.append(line)
        elif line.startswith("$ "):
            played += [line, *shell.run(line[2:]).splitlines()]
        if line == "```console":
            in_session = True
    text = "\n".join(played) + "\n"
    return _without_numbers(_without_chance(text.replace(str(Path.cwd()), "/srv")))


def _without_chance(text: str) -> str:
    """Keys and one-time links are random: each becomes the same words."""
    text = re.sub(r"/console/link/[\w-]{43}", "/console/link/YourOwnLinkStandsHere", text)
    text = re.sub(r"pets_live_[0-9A-Za-z]{38}\b", "pets_live_YourOwnKeyStandsHere", text)
    return re.sub(r"pets_live_…[0-9A-Za-z]{4}", "pets_live_…Here", text)


def _without_numbers(text: str) -> str:
    """What each migration changes: the list of migrations, and the version of the schema."""
    text = re.sub(r"^(applied .*\n)+", "applied NEWEST\n", text, flags=re.M)
    return re.sub(r"^schema version  \d+$", "schema version  NEWEST", text, flags=re.M)


def main() -> None:
    """Write it anew."""
    pwd.getpwuid = lambda _uid: ALICE
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        PLAYED.write_text(play(PLAYED.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
