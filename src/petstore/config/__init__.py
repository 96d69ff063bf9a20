"""Settings: a table of data, read once from the environment and a TOML file, checked in combination.

The environment wins over the file. docs/settings.md is held to the table (table.py) by a test.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from petstore.config.masking import masked
from petstore.config.table import PREFIX, TABLE, Setting, Settings
from petstore.config.user import ACTOR_VARIABLE
from petstore.core.errors import ConfigurationError
from petstore.core.mails import BASE_MAX

__all__ = ["TABLE", "Setting", "Settings", "masked"]  # names of this package's modules, for others

# When GET /pets/{petId} goes (specification, Versioning): it may be postponed and never brought forward.
PUBLISHED_REMOVAL = datetime(2030, 12, 5, tzinfo=UTC)
# The last two are for clients: a developer's terminal often has them where it runs commands too.
_NO_SETTINGS = {ACTOR_VARIABLE, PREFIX + "URL", PREFIX + "KEY"}


def read_environment() -> dict[str, str]:
    """The PETSTORE_* variables that are settings. Only this function, systemd.py and user.py read them."""
    return {
        name: value
        for name, value in os.environ.items()
        if name.startswith(PREFIX) and name not in _NO_SETTINGS
    }


class SourcedText(msgspec.Struct, frozen=True):
    """A setting's text in force and where it comes from: `default`, a file, or a variable."""

    text: str
    source: str


def texts(environment: Mapping[str, str]) -> tuple[dict[str, SourcedText], list[ConfigurationError]]:
    """Each setting's text in force: the default, then the TOML file, then the environment.

    And the faults of names and files; what has none is read nevertheless.
    """
    values = {setting.name: SourcedText(setting.default, "default") for setting in TABLE}
    faults: list[ConfigurationError] = []
    rest = dict(environment)
    path = rest.pop(PREFIX + "CONFIG", "")
    if path:
        with _kept(faults):
            _read_file(Path(path), values, faults)
    for setting in TABLE:
        if setting.variable in rest:
            values[setting.name] = SourcedText(rest.pop(setting.variable), setting.variable)
        if setting.secret and (named := rest.pop(f"{setting.variable}_FILE", "")):
            with _kept(faults):
                if setting.variable in environment:
                    raise ConfigurationError(
                        f"{setting.variable} and {setting.variable}_FILE contradict; set one."
                    )
                secret = _read_text(Path(named), f"{setting.variable}_FILE={named!r} can't be read")
                values[setting.name] = SourcedText(secret.strip(), named)
    if rest:
        unknown = ", ".join(sorted(rest))
        faults.append(ConfigurationError(f"{unknown}: no such setting; `petstore config` lists them all."))
    return values, faults


@contextmanager
def _kept(faults: list[ConfigurationError]) -> Iterator[None]:
    try:
        yield
    except ConfigurationError as error:
        faults.append(error)


def load(environment: Mapping[str, str] | None = None) -> Settings:
    """The settings in force. Raises ConfigurationError with one line for the first thing that is wrong."""
    values, faults = texts(read_environment() if environment is None else environment)
    if faults:
        raise faults[0]
    parsed = {}
    for setting in TABLE:
        text = values[setting.name].text
        try:
            parsed[setting.field] = setting.parse(text)
        except ValueError as error:
            shown = setting.variable if setting.secret else f"{setting.variable}={text!r}"
            source = values[setting.name].source
            origin = "" if source == setting.variable else f", from {source}"
            raise ConfigurationError(f"{shown}{origin}: {error}.") from None
    settings = Settings(**parsed)
    check(settings)
    return settings


def check(settings: Settings) -> None:
    """Raise ConfigurationError for values that contradict each other."""
    if contradiction := next(_contradictions(settings), ""):
        raise ConfigurationError(contradiction)


def _contradictions(settings: Settings) -> Iterator[str]:
    if settings.removal_date < PUBLISHED_REMOVAL:
        yield (
            "PETSTORE_REMOVAL_DATE: the published date, 2030-12-05, may be postponed, never brought forward."
        )
    if any(network.prefixlen == 0 for network in settings.trusted_proxies):
        yield "PETSTORE_TRUSTED_PROXIES: a network with /0 would trust everybody."
    if list(settings.ban_durations_ms) != sorted(settings.ban_durations_ms):
        yield "PETSTORE_BAN_DURATIONS: each ban must last at least as long as the one before."
    if settings.ban_grace_ms >= settings.ban_window_ms:
        yield "PETSTORE_BAN_GRACE must be shorter than PETSTORE_BAN_WINDOW."
    stage = settings.stage
    if stage and settings.environment not in ("", stage.environment):
        yield (
            f"PETSTORE_ENVIRONMENT={settings.environment} and PETSTORE_STAGE={stage} contradict: the keys of"
            f" {stage} are {stage.environment}. Leave PETSTORE_ENVIRONMENT empty."
        )
    if settings.smtp_url is not None:
        yield from _faults_of_mail(settings)
    yield from _faults_of_sharing(settings)


def _faults_of_mail(settings: Settings) -> Iterator[str]:
    """Mail says who sends it, and has links to the service."""
    if settings.mail_from is None:
        yield (
            "PETSTORE_SMTP_URL needs PETSTORE_MAIL_FROM, the address that mail is from, such as"
            " petstore@example.com."
        )
    if not (settings.base_url or settings.is_loopback):
        yield (
            "PETSTORE_SMTP_URL needs PETSTORE_BASE_URL, such as https://api.example.com/v1: mail has links to"
            " the service."
        )
    if len(settings.reached_at) > BASE_MAX:
        yield (
            f"PETSTORE_SMTP_URL needs a PETSTORE_BASE_URL of at most {BASE_MAX} characters without /v1: lines"
            " of mail can't be longer."
        )


def _faults_of_sharing(settings: Settings) -> Iterator[str]:
    """Several processes need counters and a database that all of them can reach."""
    if settings.valkey_url and settings.database_url.startswith("sqlite:"):
        yield (
            "PETSTORE_VALKEY_URL shares counters between processes, and a SQLite file is served by one alone:"
            " set PETSTORE_DATABASE_URL to postgresql://…, or leave PETSTORE_VALKEY_URL empty."
        )
    for name, number in (("WORKERS", settings.workers), ("REPLICAS", settings.replicas)):
        if number > 1 and not settings.valkey_url:
            yield (
                f"PETSTORE_{name}={number} needs shared counters, or every process would grant each plan's"
                " whole limit: set PETSTORE_VALKEY_URL=valkey://… and PETSTORE_DATABASE_URL=postgresql://…,"
                " or leave it at 1."
            )


def _read_file(path: Path, values: dict[str, SourcedText], faults: list[ConfigurationError]) -> None:
    """Put what the file says in the place of `values`. Raises ConfigurationError when it can't be read."""
    unreadable = f"PETSTORE_CONFIG={str(path)!r} can't be read"
    import tomllib  # most commands read no file

    text = _read_text(path, unreadable)
    try:
        table = tomllib.loads(text)
    except RecursionError:
        raise ConfigurationError(f"{unreadable}: it is nested too deeply.") from None
    except ValueError as error:
        raise ConfigurationError(f"{unreadable}: {error}.") from None
    if unknown := sorted(set(table) - set(values)):
        faults.append(
            ConfigurationError(
                f"{path}: no such setting: {', '.join(unknown)}; `petstore config` lists them all, here in"
                f" lower case without {PREFIX}."
            )
        )
    for name, value in table.items():
        if name in values:
            with _kept(faults):
                values[name] = SourcedText(_as_text(path, name, value), str(path))


def _as_text(path: Path, name: str, value: object) -> str:
    if isinstance(value, list):
        return ",".join(_as_text(path, name, part) for part in value)
    if isinstance(value, dict):
        raise ConfigurationError(f"{path}: {name} takes one value or a list; it is a table.")
    if isinstance(value, bool):
        return "on" if value else "off"
    try:
        return str(value)
    except ValueError:  # a number of thousands of digits
        raise ConfigurationError(f"{path}: {name} is too large a number.") from None


def _read_text(path: Path, unreadable: str) -> str:
    try:
        if path.is_fifo():  # reading it again at a reload could block forever
            raise ConfigurationError(f"{unreadable}: it is a pipe; name a file.")
        return path.read_text(encoding="utf-8-sig")  # some editors write a mark
    except OSError as error:
        raise ConfigurationError(f"{unreadable}: {error.strerror}.") from None
    except UnicodeDecodeError:  # its message quotes bytes, which may be a secret
        raise ConfigurationError(f"{unreadable}: it is not UTF-8.") from None
