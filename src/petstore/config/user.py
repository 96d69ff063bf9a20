"""Who runs a command: the actor that the journal names."""

from __future__ import annotations

import os
import pwd

_NAME_MAX_CHARACTERS = 64


def read_actor() -> str:
    """`cli:USER`, the user's name from the operating system: USER and LOGNAME can be set to anything.

    A process of root that sudo started has the name of the user who called sudo.
    """
    user = os.geteuid()
    if user == 0:
        called_by = os.environ.get("SUDO_USER", "")
        if called_by.isprintable() and " " not in called_by and 0 < len(called_by) <= _NAME_MAX_CHARACTERS:
            return f"cli:{called_by}"
    try:
        return f"cli:{pwd.getpwuid(user).pw_name}"
    except KeyError:  # containers run under ids without a name
        return f"cli:uid-{user}"
