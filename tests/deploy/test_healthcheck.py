"""deploy/healthcheck, with which a container asks its service."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.deploy.files import DEPLOY
from tests.deploy.fronts import Replica
from tests.support import machine
from tests.support.server import running_server
from tools.servers.ports import free_port

pytestmark = pytest.mark.e2e


def check(port: int, *words: str) -> int:
    """The exit code of the check."""
    machine.program("bash")
    shell = {"PATH": os.environ["PATH"], "PETSTORE_PORT": str(port)}
    command: list[str | Path] = [DEPLOY / "healthcheck", *words]
    return subprocess.run(command, env=shell, capture_output=True, timeout=20, check=False).returncode


def test_a_service_that_answers_is_healthy(tmp_path: Path) -> None:
    """The health check succeeds at the port that PETSTORE_PORT names, also for a path that is given to it."""
    with running_server(tmp_path) as server:
        assert check(server.port) == 0
        assert check(server.port, "/readyz") == 0
        assert check(server.port, "/nothing-here") == 1


def test_the_check_fails_where_nobody_listens() -> None:
    """A container without its service is unhealthy."""
    assert check(free_port()) == 1


def test_a_service_that_hangs_fails() -> None:
    """It accepts and does not answer: the check gives up before its own time is over."""
    replica = Replica()
    replica.answers.clear()
    try:
        assert check(replica.port, "/v1/pets") == 1
    finally:
        replica.answers.set()
        replica.close()
