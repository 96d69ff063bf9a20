"""Refusals before a body: 400 a round, by http.client, urllib, httpx and Node.js, with head and body apart by
0 to 20 ms; every next request on the connection is answered, or its end was announced. Before them 10,000
clients send a head and no body, while others with a key add and list animals: nobody waits for them.
"""

from __future__ import annotations

import random
import tempfile
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

from tests.support.cluster import Load
from tests.support.refusals import CLIENTS, DELAYS_SECONDS, GOOD, Outcomes, refusals
from tests.support.report import Report
from tests.support.server import Server, issue_key, running_server
from tests.support.waiting import pause
from verification.torture.silent import silent_crowd

_REQUESTS = 25  # by each client with each delay
_SHOPPING_SECONDS = 10.0


def run(report: Report, seed: int, seconds: float) -> None:
    """One server for all rounds; the kinds of refusals are from the seed."""
    with tempfile.TemporaryDirectory() as folder:
        key = issue_key(Path(folder) / "petstore.db")
        with running_server(Path(folder), access_log="off") as server:
            server.key = key
            _crowd(report, server)
            for number in report.rounds(seed, seconds):
                _round(report, server, number)


def _round(report: Report, server: Server, seed: int) -> None:
    kinds = refusals(server.key, random.Random(seed))
    with ThreadPoolExecutor(len(DELAYS_SECONDS)) as pool:
        sending = [
            pool.submit(client, server.port, list(islice(kinds, _REQUESTS)), delay)
            for client in CLIENTS
            for delay in DELAYS_SECONDS
        ]
        outcomes = sum((sent.result() for sent in sending), Outcomes())
    report.counts.update(outcomes)
    for outcome in outcomes.keys() - GOOD:
        report.fault(f"{outcomes[outcome]} times {outcome}")


def _crowd(report: Report, server: Server) -> None:
    """Clients with a key, alone and beside the crowd."""
    with Load(server.port, server.key) as alone:
        pause(_SHOPPING_SECONDS)
    with silent_crowd(server.port) as crowd, Load(server.port, server.key) as beside:
        pause(_SHOPPING_SECONDS)
    for name, load in (("alone", alone), ("beside the crowd", beside)):
        report.counts[f"answers with a key {name}"] += load.answered.total()
        report.took(f"with a key {name}", load.slowest)
        if load.failed:
            report.fault(f"{name}: with a key {load.failed[:9]}")
    report.note(f"the crowd: {crowd}")
    report.took("a silent client", crowd.slowest)
    if not set(crowd.outcomes) <= {"401 unannounced", "429 unannounced"}:  # the body may still come
        report.fault(f"the crowd: {dict(crowd.outcomes)}")
