"""PostgreSQL and Valkey of a cluster: on 127.0.0.1, with passwords, and their data kept for the next time."""

from __future__ import annotations

import os
import secrets
import subprocess
from pathlib import Path
from typing import Self

from tools.servers import Unusable, find
from tools.servers.postgres import Postgres as AnyPostgres
from tools.servers.postgres import give_to_nobody
from tools.servers.valkey import Valkey as AnyValkey


def write_secret(path: Path, text: str) -> None:
    """Only the owner may read it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)


class Postgres(AnyPostgres):
    """A PostgreSQL whose URL, with the password, is in `url_file`."""

    def __init__(self, folder: Path, port: int) -> None:
        self.port = port
        self.url_file = folder / "database_url"
        super().__init__(
            find.postgres(folder),
            folder / "postgres",
            folder / "postgres.log",
            ("127.0.0.1", port),
            *(f"port={port}", "listen_addresses=127.0.0.1", "unix_socket_directories="),
        )

    def start(self) -> None:
        """Start, and wait until it answers; the first time, make its data. Raises Unusable."""
        self._check_folder()
        password = self.folder / "password"
        if not (self.folder / "data" / "PG_VERSION").exists():
            password.write_text(secrets.token_urlsafe(24))
            give_to_nobody(password)
            password.chmod(0o600)
            self.make("--auth=scram-sha-256", "--pwfile=password")
        write_secret(
            self.url_file, f"postgresql://petstore:{password.read_text()}@127.0.0.1:{self.port}/postgres"
        )
        self.launch()
        self.await_answers()

    def _check_folder(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        give_to_nobody(self.folder)
        if subprocess.run(["test", "-w", self.folder], **find.as_nobody(), check=False).returncode:
            raise Unusable(
                f"PostgreSQL does not run as root, and the user nobody can't reach {self.folder}: work as"
                " another user, or name another directory with ARGS='--data DIRECTORY'."
            )


class Valkey(AnyValkey):
    """A Valkey that keeps an append-only file. Its URL, with a password for this run, is in `url_file`."""

    def __init__(self, folder: Path, port: int) -> None:
        self.port = port
        self.url_file = folder / "valkey_url"
        super().__init__(
            find.valkey(), folder / "valkey", folder / "valkey.log", ("127.0.0.1", port), "valkey.conf"
        )

    def start(self) -> Self:
        """Start with a new password, and wait until it answers. Raises Unusable."""
        self.folder.mkdir(parents=True, exist_ok=True)
        password = secrets.token_urlsafe(24)
        lines = (
            f"bind 127.0.0.1\nport {self.port}\nrequirepass {password}\n",
            'appendonly yes\nappendfsync everysec\nsave ""\nmaxmemory-policy noeviction\n',
        )
        write_secret(self.folder / "valkey.conf", "".join(lines))
        write_secret(self.url_file, f"valkey://:{password}@127.0.0.1:{self.port}/0")
        return super().start()
