"""Starts the processes that work on uploads, and ends them with the server."""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import subprocess
import sys

import structlog

from petstore.config import Settings
from petstore.core.errors import StoreUnavailable
from petstore.core.uploads import BEFORE, BROKEN, STOPPED, UploadRepository, UploadRun, UploadState
from petstore.wiring.import_process import ImportTask

# -P: no module of the working directory is imported.
_COMMAND = [sys.executable, "-P", "-m", "petstore.wiring.import_process"]
# At a stop. An import that is committing ends first; any other one in less than a second.
_STOP_SECONDS = 10.0

_log = structlog.get_logger("petstore.imports")


class ImportProcesses:
    """Implements console.stock.Importer: Python that reads a million rows must not do it beside requests."""

    def __init__(self, settings: Settings, uploads: UploadRepository) -> None:
        self._settings = settings
        self._uploads = uploads
        self._running: dict[subprocess.Popen[bytes], asyncio.Task[None]] = {}
        self._is_closed = False

    async def start(self, run: UploadRun, step: UploadState, actor: str) -> None:
        """Begin the work that was claimed. Whatever becomes of it is noted in the store."""
        try:
            process = await asyncio.to_thread(self._spawn, ImportTask(self._settings, run, actor))
        except OSError as error:  # no memory, or too many processes
            _log.error("import failed", upload=run.upload_id, reason=str(error))
            await self._uploads.end(run, BEFORE[step], BROKEN)
            return
        self._running[process] = asyncio.create_task(self._watch(process, run, step))
        if self._is_closed:
            _end_input(process)

    async def check_next(self) -> None:
        """Begin to check the list that waits longest, unless one is worked on."""
        if (waiting := await self._uploads.claim_next()) is not None:
            await self.start(waiting.run, UploadState.CHECKING, waiting.actor)

    def _spawn(self, task: ImportTask) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(_COMMAND, stdin=subprocess.PIPE)
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended already, which `_watch` notes
            pickle.dump(task, process.stdin)
            process.stdin.flush()
        return process

    async def _watch(self, process: subprocess.Popen[bytes], run: UploadRun, step: UploadState) -> None:
        try:
            code = await asyncio.to_thread(process.wait)
            if code:
                if not self._is_closed:
                    _log.error("import failed", upload=run.upload_id, exit_code=code)
                await self._uploads.end(run, BEFORE[step], STOPPED if self._is_closed else BROKEN)
            if not self._is_closed:
                await self.check_next()
        except StoreUnavailable as error:
            _log.warning("import failed", upload=run.upload_id, reason=str(error))
        finally:
            _end_input(process)
            del self._running[process]

    async def close(self) -> None:
        """Let every process finish its commit or abandon its work; kill those that do neither."""
        self._is_closed = True
        while self._running:  # the end of one may just have begun another
            for process in self._running:
                _end_input(process)
            _, late = await asyncio.wait(self._running.values(), timeout=_STOP_SECONDS)
            if late:
                for process in self._running:
                    process.kill()
                await asyncio.wait(late)


def _end_input(process: subprocess.Popen[bytes]) -> None:
    """Tell the process to stop."""
    if process.stdin is not None and not process.stdin.closed:
        with contextlib.suppress(BrokenPipeError):  # of a process that has not read its task
            process.stdin.close()
