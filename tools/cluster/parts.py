"""The parts of a cluster: how each is set up, started, asked whether it is ready, and stopped."""

from __future__ import annotations

import http.client
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tools.cluster import programs
from tools.cluster.programs import Child, Unusable

PETSTORE = Path(sys.executable).with_name("petstore")
NGINX = Path(__file__).resolve().parents[2] / "deploy" / "nginx"
_START_SECONDS = 30.0
_LOOK_AGAIN_SECONDS = 0.02


def is_free(port: int) -> bool:
    """Whether somebody could listen on it."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def wait_until(condition: Callable[[], bool], child: Child) -> None:
    """Until the condition holds; Unusable, with the end of its log, when the child ended or it never does."""
    deadline = time.monotonic() + _START_SECONDS
    while not condition():
        if child.ended() is not None or time.monotonic() > deadline:
            said = child.log.read_text(errors="replace")[-2_000:].strip()
            raise Unusable(f"{child.name} did not start. Its log, {child.log}, ends with:\n{said}")
        time.sleep(_LOOK_AGAIN_SECONDS)


def answers(port: int, path: str) -> bool:
    """Whether a GET is answered 200."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def write_secret(path: Path, text: str) -> None:
    """Only the owner may read it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)


class Postgres:
    """A PostgreSQL on the loopback address, with a password."""

    def __init__(self, folder: Path, port: int) -> None:
        self.port = port
        self.url_file = folder / "database_url"
        self.programs = programs.postgres(folder)
        self._folder = folder / "postgres"
        options = (f"--port={port}", "--listen_addresses=127.0.0.1", "--unix_socket_directories=")
        self.child = Child(
            "PostgreSQL",
            [self.programs / "postgres", "-D", "data", *options],
            folder / "postgres.log",
            cwd=self._folder,
            **programs.as_nobody(),
        )

    def start(self) -> None:
        programs.give_to_nobody(self._folder)
        if not (self._folder / "data" / "PG_VERSION").exists():
            self._make()
        self._write_url()
        self.child.start()
        wait_until(self._is_ready, self.child)

    def _make(self) -> None:
        password = self._folder / "password"
        password.write_text(secrets.token_urlsafe(24))
        if os.geteuid() == 0:
            os.chown(password, *(2 * [self._folder.stat().st_uid]))
        password.chmod(0o600)
        kinds = ("--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--username=petstore")
        made = subprocess.run(
            [self.programs / "initdb", "--pwfile=password", *kinds, "-D", "data"],
            cwd=self._folder,
            capture_output=True,
            text=True,
            check=False,
            **programs.as_nobody(),
        )
        if made.returncode:
            raise Unusable(f"PostgreSQL's initdb failed: {made.stderr.strip()}")

    def _write_url(self) -> None:
        password = (self._folder / "password").read_text()
        write_secret(self.url_file, f"postgresql://petstore:{password}@127.0.0.1:{self.port}/postgres")

    def _is_ready(self) -> bool:
        """It answers a start-up message with a question for the password."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), 2) as connection:
                parameters = b"\x00\x03\x00\x00user\x00petstore\x00\x00"
                connection.sendall((len(parameters) + 4).to_bytes(4, "big") + parameters)
                return connection.recv(1) == b"R"
        except OSError:
            return False

    def stop(self) -> None:
        self.child.stop(signal.SIGINT)


class Valkey:
    """A Valkey on the loopback address, with a password, that keeps an append-only file."""

    def __init__(self, folder: Path, port: int) -> None:
        self.port = port
        self.url_file = folder / "valkey_url"
        self._folder = folder / "valkey"
        self.child = Child(
            "Valkey", [programs.valkey(), "valkey.conf"], folder / "valkey.log", cwd=self._folder
        )

    def start(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        password = secrets.token_urlsafe(24)
        lines = (
            f"bind 127.0.0.1\nport {self.port}\nrequirepass {password}\n",
            'appendonly yes\nappendfsync everysec\nsave ""\nmaxmemory-policy noeviction\n',
        )
        write_secret(self._folder / "valkey.conf", "".join(lines))
        write_secret(self.url_file, f"valkey://:{password}@127.0.0.1:{self.port}/0")
        self.child.start()
        wait_until(self._is_ready, self.child)

    def _is_ready(self) -> bool:
        """It answers; that a password is needed is an answer."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), 2) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(16).startswith(b"-NOAUTH")
        except OSError:
            return False

    def stop(self) -> None:
        self.child.stop()


class Replica:
    """A `petstore serve` with several workers."""

    def __init__(
        self, folder: Path, number: int, port: int, settings: Mapping[str, str], program: Path = PETSTORE
    ) -> None:
        self.number = number
        self.program = program
        self.port = port
        self.settings = {**settings, "host": "127.0.0.1", "port": str(port)}
        self.began = 0.0
        self.child = Child(f"Replica {number}", [program, "serve"], folder / f"replica-{number}.log")

    def launch(self) -> None:
        """Start, and wait for nothing."""
        self.began = time.monotonic()
        self.child.command = [self.program, "serve"]
        self.child.start(environment(self.settings))

    def is_ready(self) -> bool:
        return answers(self.port, "/readyz")

    def stop(self) -> None:
        self.child.stop()


def environment(settings: Mapping[str, str]) -> dict[str, str]:
    """This process's environment with these settings, and none of its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PETSTORE_")}
    return kept | {f"PETSTORE_{name.upper()}": text for name, text in settings.items()}


class Nginx:
    """nginx with deploy/nginx/nginx.conf, in which only addresses and directories are replaced."""

    def __init__(self, program: Path, folder: Path, port: int, replicas: tuple[int, int]) -> None:
        self.port = port
        self._folder = folder / "nginx"
        self.access_log = self._folder / "access.log"
        self._replicas = replicas
        command: list[str | Path] = [
            program,
            "-e",
            "stderr",
            "-p",
            self._folder,
            "-c",
            "nginx.conf",
            "-g",
            "daemon off;",
        ]
        self.child = Child("nginx", command, folder / "nginx.log")

    def launch(self) -> None:
        """Start, and wait for nothing."""
        self._folder.mkdir(parents=True, exist_ok=True)
        for name, replaced in self._replaced().items():
            (self._folder / name).write_text(placed(NGINX / name, replaced))
        self.child.start()

    def _replaced(self) -> dict[str, dict[str, str]]:
        """For each file what stands there for compose.yaml's network and its container."""
        first, second = self._replicas
        here = {
            "172.30.57.11:8080": f"127.0.0.1:{first}",
            "172.30.57.12:8080": f"127.0.0.1:{second}",
            "listen 8080;": f"listen 127.0.0.1:{self.port};",
            "/run/nginx/": f"{self._folder}/",
            "worker_processes auto;": "worker_processes 2;",
        }
        return {"nginx.conf": here, "http.conf": {}, "server.conf": {"/var/log/nginx/": f"{self._folder}/"}}

    def start(self) -> None:
        self.launch()
        wait_until(lambda: answers(self.port, "/healthz"), self.child)

    def stop(self) -> None:
        self.child.stop(signal.SIGQUIT)


def placed(file: Path, replaced: Mapping[str, str]) -> str:
    """A configuration with these parts replaced. Raises Unusable when one of them is not there."""
    text = file.read_text(encoding="utf-8")
    for old, new in replaced.items():
        if old not in text:
            raise Unusable(f"{file} has no {old!r}, which stands for a part of this cluster.")
        text = text.replace(old, new)
    return text
