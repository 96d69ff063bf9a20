"""`python -m petstore.wiring.import_process`: checks or stores one upload, in a process of its own.

Its task comes by standard input, which stays open for as long as the server wants the work done: at its end,
also when the server was killed, the work is abandoned.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import sys
from typing import BinaryIO

import msgspec

from petstore.config import Settings
from petstore.core.clock import SystemClock
from petstore.core.lists.uploaded import UploadWork
from petstore.core.uploads import UploadRun
from petstore.wiring.administration import backend_of, store_for_command

# The least share of the processor: the server's requests go first.
_NICENESS = 10


class ImportTask(msgspec.Struct, frozen=True):
    """What to do: the step is in the upload's state. `settings` are those of the server."""

    settings: Settings
    run: UploadRun
    actor: str


def main() -> None:
    """Read the task and carry it out. How it ended is in the store."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C stops the server, which ends standard input
    os.nice(_NICENESS)
    task: ImportTask = pickle.load(sys.stdin.buffer)
    asyncio.run(_carry_out(task, sys.stdin.buffer))


async def _carry_out(task: ImportTask, input_stream: BinaryIO) -> None:
    loop, work = asyncio.get_running_loop(), asyncio.current_task()
    assert work is not None

    def stop() -> None:
        loop.remove_reader(input_stream)
        work.cancel()

    loop.add_reader(input_stream, stop)
    settings = task.settings
    opened = store_for_command(backend_of(settings), settings.valkey_url, SystemClock(), _say)
    async with opened as store:
        await UploadWork(store, task.run, task.actor).carry_out()
        loop.remove_reader(input_stream)  # what is stored is announced to all before this ends


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
