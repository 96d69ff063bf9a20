"""docs/operations.md and monitoring.md: what they name is in the service and the project; the drill works."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import msgspec
from prometheus_client import generate_latest
from prometheus_client.core import Metric

from petstore import config
from petstore.config import TABLE
from petstore.core.durations import DAY_MS, MINUTE_MS
from petstore.core.keys import Caller
from petstore.core.notifications import BEGUN_MAX, GATHERED_MS, KEPT_MS
from petstore.ops.access_log import AccessEntry, AccessFormat
from petstore.ops.supervision import SupervisorMetrics, supervision_metrics, write_metrics
from petstore.server.parent import ParentService
from tests.architecture.sources import tracked
from tests.docs.documents import ROOT, fences, section, text_of
from tests.support.service import Shop

DOCUMENT = text_of(ROOT / "docs" / "operations.md")
MONITORING = text_of(ROOT / "docs" / "monitoring.md")
BEHAVIOUR = text_of(ROOT / "docs" / "behaviour.md")
RELIABILITY = text_of(ROOT / "docs" / "reliability.md")
TROUBLESHOOTING = text_of(ROOT / "docs" / "troubleshooting.md")


class Only:
    """A registry of one family."""

    def __init__(self, family: Metric) -> None:
        self._family = family

    def collect(self) -> list[Metric]:
        return [self._family]


def test_a_stop_takes_no_longer_than_promised() -> None:
    """I16: a process that hangs is killed before that, with the settings as they are sold."""
    settings = config.load({})
    with socket.socket() as listener:
        killed_after = ParentService(settings, listener, 1, None, settings).timeouts.stop_seconds
    (promised,) = re.findall(r"\*\*I16\*\*: .* ends within (\d+) s", RELIABILITY)
    assert killed_after < int(promised)


async def test_every_metric_is_named(shop: Shop, tmp_path: Path) -> None:
    """What /metrics shows is in the list of metrics, with its labels, and nothing else is."""
    await shop.post({"name": "Rex", "categoryId": 1})
    shown = (await shop.call("GET", "/metrics")).body.decode()
    write_metrics(tmp_path, SupervisorMetrics(1, {"exit": 0}, {"done": 0}, background=True))
    for metric in supervision_metrics(tmp_path)():
        shown += generate_latest(Only(metric)).decode()
    labels: dict[str, set[str]] = {}
    for name in re.findall(r"^# TYPE (\w+) \w+$", shown, re.M):
        samples = re.findall(rf"^{name}(?:_bucket|_count|_sum)?{{(.*)}}", shown, re.M)
        labels[name] = {label for sample in samples for label in re.findall(r"(\w+)=", sample)} - {"le"}
    rows = re.findall(r"^\* (`\w+`(?:, `\w+`)*)(.*?): ", section(MONITORING, "Metrics"), re.M)
    table = {
        name: set(re.findall(r"`(\w+)`", text))
        for names, text in rows
        for name in re.findall(r"`(\w+)`", names)
    }
    assert table == labels


def test_every_field_of_the_access_log_is_named() -> None:
    """The example is a line as it is written, and the table has each of its fields."""
    text = section(MONITORING, "Logs").partition("Other events")[0]
    entry = AccessEntry(
        0, 0.5, "GET", "/v1/pets", "listPets", 401, 2, ("::1", 1), b"", Caller(1, 1, (1, 1)), "expired", b"id"
    )
    fields = list(msgspec.json.decode(AccessFormat().json_line(entry)))
    example = re.search(r"^```json\n(.*)\n```$", text, re.M)
    assert example is not None
    assert list(msgspec.json.decode(example[1])) == fields
    rows = re.findall(r"^\* ((?:`\w+`(?:, )?)+): ", text, re.M)
    assert [name for row in rows for name in re.findall(r"`(\w+)`", row)] == fields


def test_every_event_is_named() -> None:
    """Each event that the code logs is in the list of events."""
    source = "".join(text_of(path) for path in (ROOT / "src" / "petstore").rglob("*.py"))
    events = set(re.findall(r"(?:_log\.\w+|\.warn)\(\s*\"([^\"]+)\"", source))
    assert len(events) >= 4
    rows = re.findall(r"^\* (`.+?): ", section(MONITORING, "Logs").partition("Other events")[2], re.M)
    table = {name for row in rows for name in re.findall(r"`([A-Za-z -]+)`", row)}
    assert table == events


def test_what_is_to_be_installed_is_in_the_project() -> None:
    """Every file that an `install` of the page brings somewhere is committed, where the page goes for it."""
    known = {str(path) for path in tracked()}
    found = []
    place = ROOT
    for language, block in fences(DOCUMENT):
        for line in block.splitlines() if language == "sh" else ():
            if line.startswith("cd "):
                place = Path(line.removeprefix("cd ").replace("/opt/petstore", str(ROOT)))
            if line.startswith("install "):
                files = [word for word in re.split(r" -[mg] \S+| -\w+|\s+", line)[1:-1] if word]
                found += [place / word.replace("/opt/petstore", str(ROOT)) for word in files]
    assert len(found) >= 7
    assert [str(path) for path in found if str(path) not in known] == []


def test_every_unit_is_in_the_project() -> None:
    """Every unit that the page starts, reloads or asks about is in deploy/systemd, or is made on the page."""
    units = {path.name for path in (ROOT / "deploy" / "systemd").iterdir()}
    units |= set(re.findall(r"/etc/systemd/system/(petstore[\w-]+\.service)$", DOCUMENT, re.M))  # copies
    words = re.findall(r"systemctl [a-z-]+ ((?:--now )?petstore[^`\n]*)", DOCUMENT)
    named = {re.sub(r"@\d", "@", word) for text in words for word in text.split()} - {"--now"}
    assert named >= {"petstore.service", "petstore-backup.timer"}
    assert {name for name in named if not {name, f"{name}.service"} & units} == set()


def test_every_directory_is_made() -> None:
    """The page and the files under deploy/systemd name the same ones."""
    folder = ROOT / "deploy" / "systemd"
    made = set(re.findall(r"^d (\S+)", text_of(folder / "petstore.tmpfiles"), re.M))
    texts = [DOCUMENT, *(text_of(path) for path in folder.iterdir())]
    named = {
        found
        for text in texts
        for found in re.findall(r"(?:/etc|/var/lib|/var/backups)/petstore(?:-staging)?\b", text)
    }
    assert named == made


def test_the_settings_of_mail_are_all_that_it_needs(tmp_path: Path) -> None:
    """They are where the service listens for others, too."""
    ((_, lines),) = [block for block in fences(section(DOCUMENT, "Send mail")) if block[0] == "toml"]
    (tmp_path / "petstore.toml").write_text(lines, encoding="utf-8")
    settings = config.load({"PETSTORE_CONFIG": str(tmp_path / "petstore.toml"), "PETSTORE_HOST": "0.0.0.0"})
    assert settings.smtp_url is not None


def test_the_numbers_of_mail_are_those_of_the_code() -> None:
    """How long a mail waits, how long it is tried, how often it may come."""
    text = " ".join(section(DOCUMENT, "Send mail").split())
    for words, number, expected in (
        ("It waits a minute for more", GATHERED_MS, MINUTE_MS),
        ("given up after four days", KEPT_MS, 4 * DAY_MS),
        ("a kill may send one mail twice", BEGUN_MAX, 2),
    ):
        assert (words in text, number) == (True, expected)


def test_every_setting_exists() -> None:
    """A reader who sets what the page names is not refused."""
    known = {setting.variable for setting in TABLE if setting.variable}
    known |= {f"{setting.variable}_FILE" for setting in TABLE if setting.secret} | {
        "PETSTORE_CONFIG",
        "PETSTORE_ACTOR",
    }
    text = DOCUMENT + MONITORING + BEHAVIOUR + TROUBLESHOOTING
    assert set(re.findall(r"\bPETSTORE_[A-Z_]+", text)) - known == set()
