"""deploy/systemd: units as systemd reads them and against the service, the backup, and the settings file."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from petstore import config
from tests.deploy.files import DEPLOY, UNITS, settings_of, unit
from tests.deploy.files import STAGING as STAGING_SITE
from tests.support import machine
from tests.support.cases import every_case
from tests.support.server import issue_key
from tools.servers.petstore import PROGRAM, environment

SYSTEMD = DEPLOY / "systemd"
SERVICES = [path for path in UNITS if path.stem != "petstore-backup"]
TIMERS = sorted(SYSTEMD.glob("*.timer"))
STAGING = "petstore-staging.service"


def analyze(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [machine.program("systemd-analyze"), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The units as they are installed, with programs that are on this machine."""
    for path in (*UNITS, *TIMERS):
        text = re.sub(r"/opt/petstore/[\w./]+", "/bin/true", path.read_text(encoding="utf-8"))
        (tmp_path / path.name.replace("@.", "@1.")).write_text(text)
    shutil.copy(tmp_path / "petstore.service", tmp_path / STAGING)
    (tmp_path / f"{STAGING}.d").mkdir()
    shutil.copy(SYSTEMD / "staging.conf", tmp_path / f"{STAGING}.d")
    return tmp_path


class TestUnits:
    """What systemd says about them, and what each has to say to systemd."""

    def test_systemd_reads_each_without_a_remark(self, installed: Path) -> None:
        """Every line is one that systemd knows."""
        done = analyze("verify", *(installed / path.name.replace("@.", "@1.") for path in (*UNITS, *TIMERS)))
        assert (done.returncode, done.stderr) == (0, "")

    def test_staging_is_a_copy_of_production(self, installed: Path, tmp_path: Path) -> None:
        """It has settings, a port and a directory of its own, as closed to others: an empty `StateDirectory`
        makes its mode 0755. Each settings file names the other's address."""
        done = analyze("verify", installed / STAGING)
        assert (done.returncode, done.stderr) == (0, "")
        lines = (SYSTEMD / "staging.conf").read_text(encoding="utf-8")
        directives = [line for line in lines.splitlines() if line.startswith("StateDirectory")]
        assert directives == [
            "StateDirectory=",
            "StateDirectory=petstore-staging",
            "StateDirectoryMode=0700",
        ]
        assert "\nEnvironment=PETSTORE_CONFIG=/etc/petstore/staging.toml\n" in lines
        found = []
        for name in ("settings.toml", "staging.toml"):
            text = (SYSTEMD / name).read_text(encoding="utf-8").partition("# Mail")[0]
            (tmp_path / name).write_text(re.sub(r"^#(?=\w+ = )", "", text, flags=re.M))
            found.append(config.load({"PETSTORE_CONFIG": str(tmp_path / name)}))
        production, staging = found
        assert (production.stage, staging.stage) == ("production", "staging")
        production_ports = {8080, *range(8081, 8090)}  # petstore.service, and petstore@1 to petstore@9
        assert production.port in production_ports
        assert staging.port not in production_ports
        assert f"server 127.0.0.1:{staging.port};" in STAGING_SITE
        assert Path(staging.database_url.removeprefix("sqlite:///")).parent == Path(
            f"/var/lib/{STAGING[:-8]}"
        )
        assert production.other_base_url == staging.base_url
        assert staging.other_base_url == production.base_url

    @every_case("path", UNITS)
    def test_its_exposure_is_low(self, path: Path, installed: Path) -> None:
        """systemd rates it 2.0 or better, where a unit without any restriction has 9.6."""
        unit_file = installed / path.name.replace("@.", "@1.")
        done = analyze("security", "--offline=true", "--threshold=20", unit_file)
        assert done.returncode == 0, done.stdout[-200:] + done.stderr

    def test_all_are_restricted_in_the_same_way(self) -> None:
        """The lists stand in each unit, so that one can be read and copied alone; they do not drift apart."""
        texts = [path.read_text(encoding="utf-8") for path in UNITS]
        lists = {
            re.split(r"^CapabilityBoundingSet=", text, flags=re.M)[1].split("\n\n")[0].strip()
            for text in texts
        }
        assert len(texts) >= 3
        assert len(lists) == 1

    @every_case("path", UNITS)
    def test_what_each_asks_of_systemd(self, path: Path) -> None:
        """Every line reaches the journal, whose own limit drops those beyond about a thousand a second; other
        users can't read the database or its copies. `systemctl start` returns when a service serves, and a
        parent that hangs is started anew: only the parent may say so. A start has the time of a migration. A
        service is started again however long its database is away, beyond systemd's own bound on starts."""
        expected = {"LogRateLimitIntervalSec": "0", "UMask": "0077"}
        if path in SERVICES:
            expected |= {"Type": "notify", "NotifyAccess": "main", "WatchdogSec": "30"}
            expected |= {"TimeoutStartSec": "15min", "Restart": "on-failure", "RestartSec": "2"}
            expected |= {"StartLimitIntervalSec": "0"}
        found = dict(unit(path.name))
        assert {name: found.get(name) for name in expected} == expected
        assert found.get("StateDirectoryMode") == ("0700" if "StateDirectory" in found else None)

    @every_case("path", UNITS)
    def test_its_settings_are_those_of_commands(self, path: Path, tmp_path: Path) -> None:
        """The file that the command reads, and besides it no more than the port of an instance."""
        words = [value for name, value in unit(path.name) if name == "Environment"]
        given = dict(word.replace("%i", "1").split("=", 1) for word in words)
        named = given.pop("PETSTORE_CONFIG")
        assert f"config={named}\n" in (SYSTEMD / "petstore").read_text(encoding="utf-8")
        assert settings_of(given, tmp_path).port == (8081 if "@" in path.name else 8080)


class TestInstallation:
    """The user, the directories and the settings file that the units count on."""

    def test_the_user_is_made(self, tmp_path: Path) -> None:
        """systemd-sysusers makes the user that every unit names."""
        (tmp_path / "etc").mkdir()
        command: list[str | Path] = [
            machine.program("systemd-sysusers"),
            f"--root={tmp_path}",
            SYSTEMD / "petstore.sysusers",
        ]
        subprocess.run(command, check=True, timeout=20)
        made = (tmp_path / "etc" / "passwd").read_text().split(":")[0]
        assert {dict(unit(path.name))["User"] for path in UNITS} == {made}

    def test_the_directories_are_made(self) -> None:
        """tmpfiles makes the directories of settings, database and copies, and closes them to other users."""
        text = (SYSTEMD / "petstore.tmpfiles").read_text(encoding="utf-8")
        made = {
            path: (mode, user)
            for path, mode, user in re.findall(r"^d (\S+) (\d+) (\w+) petstore$", text, re.M)
        }
        assert made == {
            "/etc/petstore": ("0750", "root"),
            "/var/lib/petstore": ("0700", "petstore"),
            "/var/lib/petstore-staging": ("0700", "petstore"),
            "/var/backups/petstore": ("0700", "petstore"),
        }
        backup = dict(unit("petstore-backup.service"))
        assert backup["ReadWritePaths"] in made
        assert f" {backup['ReadWritePaths']} " in backup["ExecStart"]

    def test_the_settings_file_loads(self, tmp_path: Path) -> None:
        """The settings file loads as it is, for SQLite where the units write, and with comments enabled."""
        text = (SYSTEMD / "settings.toml").read_text(encoding="utf-8")
        settings = config.load({"PETSTORE_CONFIG": str(SYSTEMD / "settings.toml")})
        assert settings.database_url == "sqlite:////var/lib/petstore/petstore.db"
        assert dict(unit("petstore.service"))["WorkingDirectory"] == "/var/lib/petstore"
        whole = re.sub(r"^#(?=\w+ = )", "", text.replace('database_url = "sqlite', "#", 1), flags=re.M)
        (tmp_path / "petstore.toml").write_text(whole)
        settings = config.load({"PETSTORE_CONFIG": str(tmp_path / "petstore.toml")})
        assert settings.database_url.startswith("postgresql://")
        assert settings.workers == 4
        assert (settings.smtp_url is None, str(settings.mail_from)) == (
            False,
            "Pet store <petstore@example.com>",
        )


@pytest.mark.e2e
class TestBackup:
    """The script of petstore-backup.service, with the real program."""

    @pytest.fixture
    def place(self, tmp_path: Path) -> Path:
        """A database, and a directory for its copies."""
        issue_key(tmp_path / "petstore.db")
        (tmp_path / "copies").mkdir()
        return tmp_path

    def back_up(self, place: Path, keep: str = "3") -> subprocess.CompletedProcess[str]:
        shell = environment({"database_url": f"sqlite:///{place}/petstore.db"})
        command: list[str | Path] = [SYSTEMD / "backup", PROGRAM, place / "copies", keep]
        return subprocess.run(command, env=shell, capture_output=True, text=True, timeout=50, check=False)

    def names(self, place: Path) -> list[str]:
        return sorted(path.name for path in (place / "copies").iterdir())

    def test_the_newest_copies_are_kept(self, place: Path) -> None:
        """Older ones go once there is a new one; what is not a copy of this script stays."""
        old = [f"petstore-2026010{day}T020000Z.db" for day in (1, 2, 3, 4)]
        for name in (*old, "before-the-move.db", "petstore-.db"):
            (place / "copies" / name).write_text("a copy")
        done = self.back_up(place)
        assert done.returncode == 0, done.stderr
        kept = self.names(place)
        (new,) = [name for name in kept if name > old[-1] and name.startswith("petstore-2")]
        assert kept == sorted([*old[2:], new, "before-the-move.db", "petstore-.db"])
        assert (place / "copies" / new).stat().st_mode & 0o077 == 0

    def test_the_new_copy_is_kept_whatever_the_clock_said(self, place: Path) -> None:
        """Copies that a clock made which was years ahead do not displace it."""
        ahead = [f"petstore-9026010{day}T020000Z.db" for day in (1, 2, 3)]
        for name in ahead:
            (place / "copies" / name).write_text("a copy")
        done = self.back_up(place)
        assert done.returncode == 0, done.stderr
        new, *others = self.names(place)
        assert f"copies/{new}." in done.stdout
        assert others == ahead[1:]

    @pytest.mark.parametrize("fault", ["gone", "damaged"])
    def test_without_a_sound_copy_nothing_is_removed(self, place: Path, fault: str) -> None:
        """The copies from before are what is left; none that is unsound takes the place of one of them."""
        old = [f"petstore-2026010{day}T020000Z.db" for day in (1, 2, 3, 4)]
        for name in old:
            (place / "copies" / name).write_text("a copy")
        database = place / "petstore.db"
        if fault == "gone":
            database.unlink()
        else:
            whole = database.read_bytes()
            database.write_bytes(whole[:4_096] + bytes(len(whole) - 4_096))
        done = self.back_up(place)
        assert done.returncode != 0
        assert done.stderr
        assert [name for name in self.names(place) if name.startswith("petstore-")] == old

    @every_case("number", ["", "0", "00", "-1", "all"])
    def test_a_number_that_would_remove_everything_is_refused_at_first(
        self, place: Path, number: str
    ) -> None:
        """No backup is made or removed before that."""
        assert self.back_up(place, number).returncode == 2
        assert self.names(place) == []


def test_a_command_runs_as_the_user_of_the_service(tmp_path: Path) -> None:
    """Each caller: root by runuser, others by sudo, and the service's user by itself; with no variables
    of the caller's, which sudo would drop. tests/deploy/test_installed.py has the real programs."""
    script = (SYSTEMD / "petstore").read_text(encoding="utf-8")
    for name in ("id", "runuser", "sudo"):
        (tmp_path / name).write_text(f'#!/bin/sh\n[ {name} = id ] && echo "$WHO" && exit\necho {name} "$@"\n')
        (tmp_path / name).chmod(0o755)
    copied = tmp_path / "petstore"
    copied.write_text(script.replace("/opt/petstore/.venv/bin/petstore", "echo ran"))
    copied.chmod(0o755)
    (tmp_path / "petstore-staging").symlink_to(copied)

    def called_by(user: str, called: str = "petstore", **variables: str) -> str:
        shell = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "WHO": user, **variables}
        command: list[str | Path] = [tmp_path / called, "keys", "issue", "two words"]
        done = subprocess.run(command, env=shell, capture_output=True, text=True, timeout=10, check=False)
        assert done.returncode == (78 if done.stderr else 0)
        return done.stderr or done.stdout.strip()

    end = "PETSTORE_CONFIG=/etc/petstore/petstore.toml echo ran keys issue two words"
    assert called_by("petstore") == "ran keys issue two words"
    assert called_by("root") == f"runuser --user petstore -- env {end}"
    assert called_by("mia", PETSTORE_ACTOR="ben") == f"sudo --user petstore env {end}"
    of_staging = end.replace("petstore.toml", "staging.toml")
    assert called_by("root", "petstore-staging") == f"runuser --user petstore -- env {of_staging}"
    for user in ("petstore", "root", "mia"):
        assert called_by(user, PETSTORE_PORT="", PETSTORE_ACTOR="ben") == (
            "petstore: This command takes its settings from /etc/petstore/petstore.toml alone."
            " First: unset PETSTORE_PORT\n"
        )
