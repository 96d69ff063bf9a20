"""What of a secret setting may be shown: nothing that could be a part of a password."""

from __future__ import annotations

import re

MASK = "***"

# A file, or a URL each part of which is what it seems: an unescaped / ? # or @ in a password moves them.
_FILE = re.compile(r"sqlite:///[^@?#]*")
_URL = re.compile(
    r"(?P<scheme>[a-z]+://)"
    r"(?:(?P<user>[\w.~%-]*)(?P<password>:[\w.~%!$&'()*+,;=-]*)?@)?"
    r"(?P<place>(?:[\w.,-]|:[0-9]{1,5}|\[[0-9A-Fa-f:.]+\])*(?:/[\w.~%/-]*)?)"
    r"(?:\?(?P<options>[\w.~%/+=&-]*))?",
    re.ASCII,
)
_BARE = re.compile(r"[a-z]+://")


def masked(url: str) -> str:
    """The URL without its password; where it does not parse cleanly, its scheme alone."""
    if not url or _FILE.fullmatch(url):
        return url
    match = _URL.fullmatch(url)
    if match is None:
        bare = _BARE.match(url)
        return (bare[0] if bare else "") + MASK
    scheme, user, password, place, options = match.groups()
    who = "" if user is None else f"{user}:{MASK}@" if password else f"{user}@"
    how = "" if options is None else f"?{MASK if 'pass' in options.lower() else options}"
    return f"{scheme}{who}{place}{how}"
