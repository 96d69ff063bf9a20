"""Runs the cluster until it is told to stop, says how to talk to it, and restarts its replicas."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from shlex import quote
from typing import Any

import click

from petstore.core.durations import parse_duration
from tools.cluster.cluster import WORKERS, Cluster, Ports
from tools.servers import Unusable
from tools.servers.child import status_of

_LOOK_AGAIN_SECONDS = 0.2
_RESTART_SECONDS = 60.0


class _Duration(click.ParamType[int]):
    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return parse_duration(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


@click.group(invoke_without_command=True)
@click.option(
    "--data", type=click.Path(path_type=Path), default=Path(".cluster"), help="Where it keeps everything."
)
@click.option(
    "--port", type=click.IntRange(1_024, 65_531), default=8080, help="nginx's; the others take the next four."
)
@click.option("--for", "milliseconds", type=_Duration(), help="Stop after so long, such as 60s.")
@click.pass_context
def main(context: click.Context, data: Path, port: int, milliseconds: int | None) -> None:
    """Run PostgreSQL, Valkey, two replicas of two workers and nginx on 127.0.0.1, until Ctrl+C."""
    context.obj = data
    if context.invoked_subcommand is None:
        try:
            with _alone(data):
                _run(Cluster(data, Ports.from_first(port), _say), milliseconds)
        except Unusable as error:
            raise click.ClickException(str(error)) from None


@main.command()
@click.argument("number", type=click.IntRange(1, 2), required=False)
@click.pass_obj
def restart(data: Path, number: int | None) -> None:
    """Restart replica NUMBER of a running cluster, or both, one after the other."""
    for each in (number,) if number else (1, 2):
        pid, port = _noted(data, each)
        os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + _RESTART_SECONDS
        while _noted(data, each)[0] == pid or status_of(port, "/readyz") != 200:
            if time.monotonic() > deadline:
                raise click.ClickException(f"Replica {each} is not back; see {data}/replica-{each}.log.")
            time.sleep(_LOOK_AGAIN_SECONDS)
        _say(f"Replica {each} is back.")


def _noted(data: Path, number: int) -> tuple[int, int]:
    """Process and port of a replica that runs."""
    try:
        noted = json.loads((data / "running.json").read_text())
        os.kill(noted["pid"], 0)
    except (OSError, ValueError):
        raise click.ClickException(f"No cluster runs in {data}: make cluster") from None
    pid, port = noted["replicas"][str(number)]
    return pid, port


def _say(text: str) -> None:
    click.echo(text)


@contextlib.contextmanager
def _alone(data: Path) -> Iterator[None]:
    data.mkdir(parents=True, exist_ok=True)
    with (data / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Unusable(f"A cluster runs in {data} already.") from None
        yield


def _run(cluster: Cluster, milliseconds: int | None) -> None:
    """Run the cluster from its start to its stop."""
    told: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, _: told.append(number))
    _say(f"Starting PostgreSQL, Valkey, two replicas and nginx; everything is kept in {cluster.folder}.")
    key = cluster.start()
    try:
        _explain(cluster, key)
        end = time.monotonic() + milliseconds / 1_000 if milliseconds else float("inf")
        while not told and time.monotonic() < end:
            select.select([], [], [], _LOOK_AGAIN_SECONDS)
            if not told:
                cluster.tend()
    finally:
        _say("Stopping.")
        cluster.stop()
    _say("Stopped; nothing runs any more.")


def _explain(cluster: Cluster, key: str) -> None:
    """How to talk to it: lines that work as they are pasted."""
    folder, ports = cluster.folder, cluster.ports
    database, valkey = (quote(str(part.url_file)) for part in (cluster.postgres, cluster.valkey))
    petstore = f"PETSTORE_DATABASE_URL_FILE={database} PETSTORE_VALKEY_URL_FILE={valkey} .venv/bin/petstore"
    psql = cluster.postgres.programs / "psql"
    data = "" if folder == Path(".cluster").resolve() else f"--data {folder} "
    sent = f"-H 'Authorization: Bearer {key or 'KEY'}'"
    fronts = [*([ports.front] if cluster.nginx else []), *ports.replicas]
    if key:
        _say(
            f"\nFirst start: a key for the account 'local', on the Business plan. Shown only now.\n\n  {key}"
        )
    else:
        _say(f"\nThe data of the last time is there. For another key:\n\n  {petstore} keys issue local")
    if not cluster.nginx:
        _say("\nThere is no nginx here, and none could be fetched (apt-get install nginx): it goes without.")
    _say(f"\n{'nginx, and behind it' if cluster.nginx else 'These are'} two replicas of {WORKERS} workers:\n")
    for port in fronts:
        _say(f"  curl -i {sent} http://127.0.0.1:{port}/v1/pets")
    _say(
        f"  curl -i {sent} -H 'Content-Type: application/json' http://127.0.0.1:{fronts[0]}/v1/pets"
        """ -d '{"name": "Rex", "categoryId": 1}'"""
    )
    _say(f"  curl http://127.0.0.1:{ports.replicas[0]}/metrics")
    _say(f"\nCommands, PostgreSQL, Valkey:\n\n  {petstore} usage local")
    _say(f'  {psql if psql.exists() else "psql"} "$(cat {database})"')
    if client := shutil.which("valkey-cli") or shutil.which("redis-cli"):
        _say(f'  {client} -u "$(cat {valkey})"')
    else:
        _say(f"\nThere is no valkey-cli here; Valkey's address is in {cluster.valkey.url_file}.")
    _say("\nRestart the replicas one after the other; let one read its settings anew; see what they say:\n")
    _say(f"  make cluster ARGS='{data}restart'")
    _say(f"  kill -HUP {cluster.replicas[0].child.pid}")
    _say(f"  tail -f {quote(str(folder))}/*.log\n\nCtrl+C stops everything.")


if __name__ == "__main__":
    main(prog_name="make cluster")
