"""The clients that the service serves: packages in `clients/`, which `make clients` builds."""

from __future__ import annotations

import hashlib
import io
import re
import tarfile
import zipfile
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from petstore.core.packaged import Resource
from petstore.web.addresses import EXAMPLE

# The path of the page that lists them; their files are below it.
FILES = "docs/clients"


class _Kind(NamedTuple):
    """The clients of a language. `page` shows their README.md, `install` is a line for a shell."""

    language: str
    page: str
    ending: str
    install: str
    readme: Callable[[bytes], str]


class Client(msgspec.Struct, frozen=True):
    """The newest client of a language, and the page about it. `install` has the example's address."""

    language: str
    page: str
    file: str
    version: str
    size_bytes: int
    sha256: str
    install: str


def read(folder: Resource) -> list[Client]:
    """The newest client of each language."""
    return [_read(kind, _newest(kind, folder)) for kind in _KINDS]


def readme(ending: str, folder: Resource) -> str:
    """The README.md of the newest client whose files have this ending."""
    (kind,) = (kind for kind in _KINDS if kind.ending == ending)
    return kind.readme(_newest(kind, folder).read_bytes())


def _newest(kind: _Kind, folder: Resource) -> Resource:
    """Older ones stay: their addresses and hashes stand in lists of requirements."""
    files = [file for file in folder.iterdir() if file.name.endswith(kind.ending)]
    return max(files, key=lambda file: [int(number) for number in _version(file).split(".")])


def _version(file: Resource) -> str:
    found = re.search(r"-(\d+(\.\d+)*)", file.name)
    assert found is not None, file.name
    return found[1]


def _read(kind: _Kind, file: Resource) -> Client:
    body = file.read_bytes()
    digest = hashlib.sha256(body).hexdigest()
    install = kind.install.format(address=f"{EXAMPLE}/{FILES}/{file.name}", sha256=digest)
    return Client(kind.language, kind.page, file.name, _version(file), len(body), digest, install)


def _of_wheel(package: bytes) -> str:
    """The long description in its metadata, which is below the fields."""
    with zipfile.ZipFile(io.BytesIO(package)) as wheel:
        (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        return wheel.read(name).decode().partition("\n\n")[2]


def _of_archive(package: bytes) -> str:
    """The README.md of a package of npm."""
    with tarfile.open(fileobj=io.BytesIO(package)) as archive:
        file = archive.extractfile("package/README.md")
        assert file is not None
        return file.read().decode()


# A client in another language has a row here, a Page in contents.py, and its build in tools/release.py.
_KINDS = (
    _Kind("Python", "docs/clients/python", ".whl", 'pip install "{address}#sha256={sha256}"', _of_wheel),
    _Kind("TypeScript", "docs/clients/typescript", ".tgz", 'npm install "{address}"', _of_archive),
)
