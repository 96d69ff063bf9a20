"""Sessions in documents: the commands of fenced `console` blocks and what they are said to print.

A command begins with `$ ` and goes on with `> `. A line `...` stands for any number of lines; of an HTTP
response the status, the headers shown (in any order) and the body have to be there. What differs from run
to run (keys, moments, seconds) is compared by its form only.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.machine import program
from tools.servers.petstore import PROGRAM, environment

_SESSION_SECONDS = 150

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.M | re.S)
_HEADER = re.compile(r"[a-z][a-z-]*: ")
_VOLATILE = (
    (re.compile(r"pets_(live|test)_[0-9A-Za-z]+"), r"pets_\1_KEY"),
    (re.compile(r"/console/link/[\w-]+"), "/console/link/LINK"),
    (re.compile(r"pets_(live|test)_…\S{4}"), r"pets_\1_…LAST"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ"), "TIME"),
    (re.compile(r"^(x-ratelimit-reset): \d{10}$"), r"\1: UNIX"),
    (re.compile(r"^(retry-after): \d+$"), r"\1: SECONDS"),
    (re.compile(r"try again in \d+ s"), "try again in SECONDS s"),
    (re.compile(r";t=\d+"), ";t=SECONDS"),
    (re.compile(r"cursor=[\w-]+"), "cursor=CURSOR"),
    (re.compile(r"evt_[0-9a-f]{12}_\d+"), "EVENT"),
    (re.compile(r'"durationMs":\d+'), '"durationMs":MS'),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"), "MOMENT"),
    (re.compile(r"\s+"), " "),
)


@dataclass
class Step:
    """One command and the lines that are said to follow."""

    command: str
    expected: list[str] = field(default_factory=list)


def steps(document: str) -> list[Step]:
    """Every command of a document, in order."""
    found: list[Step] = []
    for block in _BLOCK.findall(document):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append(Step(line[2:]))
            elif line.startswith("> ") and not found[-1].expected:
                found[-1].command += "\n" + line[2:]
            else:
                found[-1].expected.append(line)
    return found


def plain(line: str) -> str:
    """A line without what differs from run to run."""
    for pattern, replacement in _VOLATILE:
        line = pattern.sub(replacement, line)
    return line.strip()


def matches(expected: list[str], printed: list[str]) -> bool:
    """Whether the lines that were printed are those expected, with `...` for any number of lines."""
    if expected and expected[0].startswith("HTTP/1.1 "):
        return _matches_response(expected, printed)
    if not expected:
        return not printed
    if expected[0] == "...":
        return any(matches(expected[1:], printed[at:]) for at in range(len(printed) + 1))
    return bool(printed) and plain(expected[0]) == plain(printed[0]) and matches(expected[1:], printed[1:])


def _matches_response(expected: list[str], printed: list[str]) -> bool:
    status, *rest = [plain(line) for line in expected if line != "..."]
    headers = {line for line in rest if _HEADER.match(line)}
    body = [line for line in rest if line not in headers]
    got = [plain(line) for line in printed]
    end = got.index("") if "" in got else len(got)
    return status == got[0] and headers <= set(got[1:end]) and body == got[end + 1 :]


def terminal(folder: Path, **settings: str) -> dict[str, str]:
    """The environment of a terminal with the program on its path. Skips where there is no bash or curl."""
    for tool in ("bash", "curl"):
        program(tool)
    kept = environment(settings)
    path = f"{PROGRAM.parent}{os.pathsep}{kept['PATH']}"
    return kept | {"PATH": path, "LC_ALL": "C.UTF-8", "HOME": str(folder)}


def printed_lines(text: str) -> list[str]:
    return text.replace("\r", "").strip().splitlines()


def run(
    session: list[Step], folder: Path, shell: dict[str, str] | None, prefix: Sequence[str] = ()
) -> list[tuple[int, list[str]]]:
    """Every command in one bash, one after the other: its exit code and the lines that it printed.

    `prefix` is a command that runs the bash.
    """
    script = "".join(
        f"printf '@@begin\\n'\n{{ {step.command}\n}} 2>&1\nprintf '\\n@@end %d\\n' $?\n" for step in session
    )
    finished = subprocess.run(
        [*prefix, "bash", "--norc", "-c", script],
        cwd=folder,
        env=shell,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_SESSION_SECONDS,
        check=False,
    )
    found = re.findall(r"@@begin\n(.*?)\n@@end (\d+)\n", finished.stdout, re.S)
    assert len(found) == len(session), finished.stdout + finished.stderr
    return [(int(code), printed_lines(text)) for text, code in found]


def unmet(session: list[Step], results: list[tuple[int, list[str]]]) -> str:
    """The first command that failed or printed something else than the document says; empty when none did."""
    for step, (code, lines) in zip(session, results, strict=True):
        if code != 0 or not matches(step.expected, lines):
            parts = [
                f"$ {step.command}",
                "--- the document:",
                *step.expected,
                f"--- exit code {code}:",
                *lines,
            ]
            return "\n".join(parts)
    return ""
