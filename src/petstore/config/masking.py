"""Hides passwords in URLs. In doubt it hides more than the password."""

from __future__ import annotations

import re

MASK = "***"

# A file, or a URL that parses cleanly: an unescaped / ? # or @ in a password would shift its parts.
_FILE = re.compile(r"sqlite:///[^@?#]*")
_URL = re.compile(
    r"(?P<scheme>[a-z]+://)"
    r"(?:(?P<user>[\w.~%-]*)(?P<password>:[\w.~%!$&'()*+,;=-]*)?@)?"
    r"(?P<location>(?:[\w.,-]|:[0-9]{1,5}|\[[0-9A-Fa-f:.]+\])*(?:/[\w.~%/-]*)?)"
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
    scheme, user, password, location, options = match.groups()
    login = "" if user is None else f"{user}:{MASK}@" if password else f"{user}@"
    query = "" if options is None else f"?{MASK if 'pass' in options.lower() else options}"
    return f"{scheme}{login}{location}{query}"
