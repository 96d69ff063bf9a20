"""A process that was forked while threads used the client."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

# The parent holds the locks, and the only probe waits for its answer, when it forks.
_PROGRAM = """
import os, threading
import httpx2
from petstore_client import Petstore, PetstoreError

parent, asked, answers = os.getpid(), threading.Event(), threading.Event()

def handle(request):
    if os.getpid() == parent:
        asked.set()
        answers.wait()
    return httpx2.Response(200, content=b"[]")

petstore = Petstore("http://localhost", "pets_test_" + "k" * 38, transport=httpx2.MockTransport(handle))
call = threading.Thread(target=petstore.categories.list)
call.start()
asked.wait()
pool = petstore._pool._http
with petstore._connection.limiter.lock, petstore._pool._lock:
    child = os.fork()
    if child == 0:
        petstore.close()
        done = petstore.categories.list() == [] and petstore._pool._http is not pool
        os._exit(0 if done else 1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
answers.set()
call.join()
assert status == 0, status
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_waits_for_nobody() -> None:
    """No lock, no call under way and no connection of the parent is left in it."""
    command = [sys.executable, "-c", _PROGRAM]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    assert ran.returncode == 0, ran.stderr
