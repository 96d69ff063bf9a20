"""nginx with deploy/nginx/nginx.conf, in which only addresses and directories are replaced."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from pathlib import Path

from tools.servers import Unusable
from tools.servers.child import Child, status_of

_CONFIGURATION = Path(__file__).resolve().parents[2] / "deploy" / "nginx"


class Nginx:
    """nginx on a port of 127.0.0.1 before two replicas; its files are in `folder`/nginx."""

    def __init__(self, program: Path, folder: Path, port: int, replicas: tuple[int, int]) -> None:
        self.port = port
        self._folder = folder / "nginx"
        self.access_log = self._folder / "access.log"
        self._replicas = replicas
        self.child = child_of(program, self._folder, folder / "nginx.log")

    def launch(self) -> None:
        """Start, and wait for nothing."""
        self._folder.mkdir(parents=True, exist_ok=True)
        for name, replaced in self._replaced().items():
            (self._folder / name).write_text(placed(_CONFIGURATION / name, replaced))
        self.child.start()

    def _replaced(self) -> dict[str, dict[str, str]]:
        """The parts of each file that name compose.yaml's network and its container, and our own ones."""
        first, second = self._replicas
        here = {
            "172.30.57.11:8080": f"127.0.0.1:{first}",
            "172.30.57.12:8080": f"127.0.0.1:{second}",
            "172.30.59.11:8080": "127.0.0.1:1",  # no staging here
            "listen 8080;": f"listen 127.0.0.1:{self.port};",
            "/run/nginx/": f"{self._folder}/",
            "worker_processes auto;": "worker_processes 2;",
        }
        return {"nginx.conf": here, "http.conf": {}, "server.conf": {"/var/log/nginx/": f"{self._folder}/"}}

    def start(self) -> None:
        """Start, and wait until a replica answers through it. Raises Unusable."""
        self.launch()
        self.child.wait_until(lambda: status_of(self.port, "/healthz") == 200)

    def stop(self) -> None:
        self.child.stop(signal.SIGQUIT)


def child_of(program: Path, folder: Path, log: Path) -> Child:
    """nginx with the nginx.conf of a folder, in the foreground."""
    return Child(
        "nginx", [program, "-e", "stderr", "-p", folder, "-c", "nginx.conf", "-g", "daemon off;"], log
    )


def placed(file: Path, replaced: Mapping[str, str]) -> str:
    """A configuration with these parts replaced. Raises Unusable when one of them is not there."""
    text = file.read_text(encoding="utf-8")
    for old, new in replaced.items():
        if old not in text:
            raise Unusable(f"{file} has no {old!r}, which stands for a part of this cluster.")
        text = text.replace(old, new)
    return text
