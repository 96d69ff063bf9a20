"""Who runs a command: the actor that the journal names."""

from __future__ import annotations

import os
import pwd

from petstore.core.errors import ConfigurationError

ACTOR_VARIABLE = "PETSTORE_ACTOR"
_NAME_MAX_CHARACTERS = 64
_SYSTEM_UID_MAX = 999  # login.defs(5)


def read_actor() -> str:
    """`cli:NAME`, the user's name from the operating system: USER and LOGNAME can be set to anything.

    Several people share root, a system user (as the service's own is) and an id without a name (as containers
    have): there it is the caller of sudo, else what PETSTORE_ACTOR says. Raises ConfigurationError for a
    PETSTORE_ACTOR that can't be used as a name.
    """
    user = os.geteuid()
    try:
        entry = pwd.getpwuid(user)
    except KeyError:
        entry = None
    if entry is not None and not _is_shared(entry):
        return f"cli:{entry.pw_name}"
    called_by = os.environ.get("SUDO_USER", "")
    if _is_name(called_by):
        return f"cli:{called_by}"
    if named := os.environ.get(ACTOR_VARIABLE, ""):
        if not _is_name(named):
            raise ConfigurationError(
                f"{ACTOR_VARIABLE}={named[:_NAME_MAX_CHARACTERS]!r} can't be used as a name: write 1 to"
                f" {_NAME_MAX_CHARACTERS} printable characters without a space."
            )
        return f"cli:{named}"
    return f"cli:uid-{user}" if entry is None else f"cli:{entry.pw_name}"


def _is_shared(entry: pwd.struct_passwd) -> bool:
    return entry.pw_uid <= _SYSTEM_UID_MAX or entry.pw_shell.endswith(("/nologin", "/false"))


def _is_name(text: str) -> bool:
    return text.isprintable() and " " not in text and 0 < len(text) <= _NAME_MAX_CHARACTERS
