"""The clients that the service serves: their files, the lines that install them, and pip."""

from __future__ import annotations

import hashlib
import html
import os
import re
import shlex
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest

from petstore.core.packaged import Resource
from petstore.site import clients
from tests.support.clock import ManualClock
from tests.support.server import Server
from tests.support.service import Shop, open_shop

FOLDER = Path(str(resources.files("petstore"))) / "site" / "clients"
WHEEL = f"/docs/clients/{clients.read(Resource(FOLDER))[0].file}"


def lines(page: bytes) -> list[str]:
    """What a reader of the page copies into a shell."""
    shown = re.findall(r'<code class="language-sh">(.*?)</code>', page.decode(), re.S)
    return [html.unescape(re.sub("<[^>]*>", "", line)).strip() for line in shown]


class TestFile:
    """A client's package."""

    async def test_it_arrives_as_it_is(self, shared_shop: Shop) -> None:
        """A client that takes gzip gets it so too: it is compressed already. Who has it asks each time, and
        gets 304: an unreleased version may change under its name."""
        body = (FOLDER.parent / Path(WHEEL).relative_to("/docs")).read_bytes()
        for headers in ([], [("accept-encoding", "gzip")]):
            answer = await shared_shop.call("GET", WHEEL, headers)
            assert (answer.status, answer.headers["content-type"]) == (200, "application/zip")
            assert "content-encoding" not in answer.headers
            assert answer.body == body
        head = await shared_shop.call("HEAD", WHEEL)
        assert (head.status, head.body, head.headers["cache-control"]) == (200, b"", "no-cache")
        again = await shared_shop.call("GET", WHEEL, [("if-none-match", head.headers["etag"])])
        assert (again.status, again.body) == (304, b"")

    def test_the_newest_is_shown(self, tmp_path: Path) -> None:
        """1.10.0 is newer than 1.9.0, which stays for those who have its address and hash."""
        for version in ("1.9.0", "1.10.0", "1.2.0"):
            (tmp_path / f"petstore_client-{version}-py3-none-any.whl").write_text(version)
        (tmp_path / "petstore-client-1.9.0.tgz").write_text("of another language")
        shown, _ = clients.read(Resource(tmp_path))
        assert shown.version == "1.10.0"
        assert shown.sha256 == hashlib.sha256(b"1.10.0").hexdigest()


class TestLine:
    """What installs a client."""

    async def test_the_line_has_the_readers_address_and_the_files_hash(self, shared_shop: Shop) -> None:
        """pip checks the hash of the file."""
        answer = await shared_shop.call("GET", "/docs/clients", [("host", "shop.example:9000")])
        digest = hashlib.sha256((await shared_shop.call("GET", WHEEL)).body).hexdigest()
        assert lines(answer.body)[0] == (f'pip install "http://shop.example:9000{WHEEL}#sha256={digest}"')

    async def test_it_has_the_configured_prefix(self, tmp_path: Path, clock: ManualClock) -> None:
        """A proxy that cuts it off tells nobody."""
        async with open_shop(tmp_path, clock, base_url="https://a.example/shop/v1") as shop:
            line = lines((await shop.call("GET", "/docs/clients")).body)[0]
        assert f'"https://a.example/shop{WHEEL}#' in line


@pytest.mark.e2e
@pytest.mark.slow
def test_pip_installs_what_the_page_says(server: Server, tmp_path: Path) -> None:
    """The line, as it stands, into an empty environment: the client that is installed speaks to the service.
    pip refuses a file with another hash. Nothing is asked of a package index."""
    environment, programs = tmp_path / "environment", tmp_path / "programs"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    python = environment / "bin" / "python"
    programs.mkdir()
    pip = shlex.join([sys.executable, "-m", "pip", "--python", str(python)])
    (programs / "pip").write_text(f'#!/bin/sh\nexec {pip} "$@"\n')
    (programs / "pip").chmod(0o755)
    clean = {name: text for name, text in os.environ.items() if not name.startswith(("PIP_", "PYTHON"))}
    alone = {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    alone["PIP_CACHE_DIR"] = str(tmp_path / "cache")
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"

    def install(line: str) -> subprocess.CompletedProcess[str]:
        variables = clean | alone | {"PATH": path}
        return subprocess.run(["sh", "-c", line], env=variables, capture_output=True, text=True, check=False)

    line = lines(server.request("GET", "/docs/clients").body)[0]
    refused = install(re.sub("sha256=.{8}", "sha256=00000000", line))
    assert refused.returncode != 0
    assert "DO NOT MATCH THE HASHES" in refused.stderr
    done = install(line)
    assert done.returncode == 0, done.stderr
    import httpx2  # what the client needs, of the environment of the tests

    program = (
        "import sys; from petstore_client import Petstore, __file__ as place; print(place);"
        "print([pet.name for pet in Petstore(sys.argv[1], sys.argv[2]).pets.list()])"
    )
    said = subprocess.run(
        [python, "-c", program, server.base_url, server.key],
        env=clean | {"PYTHONPATH": str(Path(httpx2.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=True,
    )
    place, names = said.stdout.splitlines()
    assert Path(place).is_relative_to(environment)
    assert names.startswith("['Rex'")
