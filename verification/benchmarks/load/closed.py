"""Closed-loop load: so many connections, each sends its next request when the last is answered."""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec

from verification.benchmarks.machine import ROOT, cores

# Requests are made before the load begins: what it costs to make one would set the rhythm of their arrival,
# and with it how much the server can do at once.
_SCRIPT = """
local requests = {}
local at = 0
function init()
  local body = %(body)s
  local headers = wrk.headers
  for line in io.lines("%(file)s") do
    local target, key, own = line:match("^(%%S+) ?(%%S*) ?(.*)$")
    local sent = own ~= "" and own or body
    headers["Authorization"] = key ~= "" and ("Bearer " .. key) or nil
    headers["Content-Type"] = sent and "application/json" or nil
    requests[#requests + 1] = wrk.format("%(method)s", target, headers, sent)
  end
end
function request()
  at = at %% #requests + 1
  return requests[at]
end
"""

_PASSES_MAX = 5


class Load(msgspec.Struct, frozen=True):
    """Requests to repeat: each line is a target and, after spaces, the key to send and a body of its own."""

    lines: tuple[str, ...]
    method: str = "GET"
    body: str = ""
    connections: int = 64
    expect: int = 200
    headers: tuple[str, ...] = ()


class Outcome(msgspec.Struct, frozen=True):
    """Requests a second over so long, and how many answers did not come or had an unexpected status."""

    per_second: float
    unexpected: int
    seconds: float


def uses_wrk() -> bool:
    return shutil.which("wrk") is not None


def run(load: Load, port: int, seconds: float) -> Outcome:
    """Apply the load for so long. Raises RuntimeError when answers are not what they should be."""
    outcome = (_wrk if uses_wrk() else _bundled)(load, port, seconds)
    # A refused key passes once a minute; anything more is another measurement than the one asked for.
    if outcome.unexpected > (_PASSES_MAX if load.expect >= 400 else 0):
        raise RuntimeError(f"{outcome.unexpected} answers were not {load.expect}: {load.lines[0]}")
    return outcome


def rate(load: Load, port: int, seconds: float) -> Callable[[], float]:
    """A measurement of the requests a second of a load."""
    return lambda: run(load, port, seconds).per_second


def pin() -> None:
    os.sched_setaffinity(0, cores()[1])


def _wrk(load: Load, port: int, seconds: float) -> Outcome:
    command = ["wrk", "-t1", f"-c{load.connections}", f"-d{math.ceil(seconds)}s", "--timeout", "10s"]
    for header in load.headers:
        command += ["-H", header]
    target, _, key = load.lines[0].partition(" ")
    with tempfile.TemporaryDirectory() as folder:
        # A single fixed request needs no script, which would slow the generator down.
        if len(load.lines) > 1 or load.body:
            lines, script = Path(folder) / "lines", Path(folder) / "script.lua"
            lines.write_text("\n".join(load.lines), encoding="ascii")
            body = f"[[{load.body}]]" if load.body else "nil"
            script.write_text(_SCRIPT % {"file": lines, "method": load.method, "body": body}, "ascii")
            command += ["-s", str(script)]
        elif key:
            command += ["-H", f"Authorization: Bearer {key}"]
        command.append(f"http://127.0.0.1:{port}{target}")
        text = subprocess.run(command, capture_output=True, text=True, check=True, preexec_fn=pin).stdout
    rate = re.search(r"Requests/sec:\s+([0-9.]+)", text)
    requests = re.search(r"([0-9]+) requests in", text)
    failed = re.search(r"Non-2xx or 3xx responses: ([0-9]+)", text)
    errors = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", text)
    if rate is None or requests is None:
        raise RuntimeError(f"wrk said: {text}")
    refused = int(failed[1]) if failed else 0
    unexpected = refused if load.expect < 400 else int(requests[1]) - refused
    seconds = int(requests[1]) / float(rate[1])
    return Outcome(float(rate[1]), unexpected + (sum(map(int, errors.groups())) if errors else 0), seconds)


def _bundled(load: Load, port: int, seconds: float) -> Outcome:
    command = [sys.executable, "-m", "verification.benchmarks.load.bursts", str(port), str(seconds)]
    asked = msgspec.json.encode(load)
    done = subprocess.run(command, input=asked, capture_output=True, check=True, preexec_fn=pin, cwd=ROOT)
    return msgspec.json.decode(done.stdout, type=Outcome)
