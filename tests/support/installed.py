"""A machine on which the service is installed as docs/operations.md says, in mounts that a command has alone.

Users, sudoers and directories are those of the mounts: nothing of the real machine is changed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.machine import program
from tests.support.programs import ROOT
from tests.support.rights import works

SERVICE_UID = 998
PERSON = "anna"
_PATH = "/opt/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PASSWD = f"""root:*:0:0::/opt/users/root:/bin/sh
petstore:*:{SERVICE_UID}:{SERVICE_UID}::/var/lib/petstore:/usr/sbin/nologin
{PERSON}:*:1000:1000::/opt/users/{PERSON}:/bin/sh
"""
_GROUP = f"root:x:0:\npetstore:x:{SERVICE_UID}:\n{PERSON}:x:1000:\n"
_SUDOERS = f"""Defaults env_reset, secure_path="{_PATH}"
root ALL=(ALL:ALL) NOPASSWD: ALL
{PERSON} ALL=(ALL:ALL) NOPASSWD: ALL
"""
# Mounted anew and empty. What the program needs below them is mounted there again, for all users to enter.
_EMPTY = (Path("/opt"), Path("/var/lib"))
_MOUNT = """set -eu
mount -t tmpfs none /srv
cp -a /etc /srv/etc
mkdir /srv/state
mount --bind "$STATE" /srv/state
number=0
for path in $NEEDED; do
    number=$((number + 1)); mkdir /srv/$number; mount --bind "$path" /srv/$number
done
for path in $EMPTY; do mount -t tmpfs -o mode=755 none "$path"; done
number=0
for path in $NEEDED; do
    number=$((number + 1)); mkdir -p "$path"; mount --move /srv/$number "$path"
done
mkdir -p /opt/bin /opt/petstore /opt/users /var/lib/petstore
install -d -m 700 /opt/users/root
install -d -m 700 -o 1000 -g 1000 /opt/users/anna
mount --move /srv/state /var/lib/petstore
ln -s "$PREFIX" /opt/petstore/.venv
install -m 755 "$SYSTEMD/petstore" /opt/bin/petstore
rm -rf /srv/etc/shadow /srv/etc/sudoers /srv/etc/sudoers.d
printf %s "$PASSWD" >/srv/etc/passwd
printf %s "$GROUP" >/srv/etc/group
printf %s "$SUDOERS" >/srv/etc/sudoers
chmod 440 /srv/etc/sudoers
mount --bind /srv/etc /etc
install -d -m 750 -g petstore /etc/petstore
install -m 640 -g petstore "$SYSTEMD/settings.toml" /etc/petstore/petstore.toml
cd "/opt/users/$CALLER"
exec env -i PATH="$INSIDE" LC_ALL=C.UTF-8 runuser --user "$CALLER" -- "$@"
"""


class Installed:
    """The service without a server; its database is in `state`. Skips where nothing can be mounted."""

    def __init__(self, folder: Path) -> None:
        if os.geteuid() != 0 or not works(["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/srv"]):
            pytest.skip("only root can mount, and not in every container")
        program("sudo")
        self.state = folder / "state"
        self.state.mkdir(mode=0o700)
        os.chown(self.state, SERVICE_UID, SERVICE_UID)
        needed = [ROOT, Path(sys.prefix), Path(sys.base_prefix)]
        empty = {*_EMPTY, *(parent for path in needed for parent in path.parents if _is_closed(parent))}
        self._variables = {
            "STATE": str(self.state),
            "EMPTY": " ".join(map(str, sorted(empty))),
            "NEEDED": " ".join(str(path) for path in needed if empty & set(path.parents)),
            "PREFIX": sys.prefix,
            "SYSTEMD": str(ROOT / "deploy" / "systemd"),
            "PASSWD": _PASSWD,
            "GROUP": _GROUP,
            "SUDOERS": _SUDOERS,
            "INSIDE": _PATH,
        }

    @property
    def database(self) -> Path:
        return self.state / "petstore.db"

    def prefix(self, caller: str) -> list[str]:
        """What to put before a command so that root or PERSON calls it there, at home, without variables."""
        variables = [f"{name}={text}" for name, text in self._variables.items()]
        return ["env", *variables, f"CALLER={caller}", "unshare", "--mount", "sh", "-c", _MOUNT, "sh"]

    def run(self, caller: str, script: str) -> subprocess.CompletedProcess[str]:
        """What a shell of the caller says to a script, which ends at the first command that fails."""
        command = [*self.prefix(caller), "sh", "-eu", "-c", script]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def _is_closed(folder: Path) -> bool:
    return not folder.stat().st_mode & 0o001
