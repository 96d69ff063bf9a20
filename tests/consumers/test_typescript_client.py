"""The client in clients/typescript: its package, in Node.js and in a browser, against the real service."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import tarfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import petstore_client
import pytest

from petstore.core.keys import Access
from petstore.http.exchange import Exchange
from tests.architecture.sources import ROOT
from tests.docs.documents import fences
from tests.http.kit import serving
from tests.support.browser import running_browser
from tests.support.clock import ManualClock
from tests.support.loops import answering
from tests.support.machine import program
from tests.support.outside import node_module, node_program, run_tool
from tests.support.server import Server, issue_key, running_server
from tests.support.service import open_shop
from tools.release import SERVED, differs
from tools.typescript import CLIENT, GENERATED, build, contract_types, pack

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.xdist_group("typescript-client")]

PROGRAMS = Path(__file__).parent / "typescript"
README = (CLIENT / "README.md").read_text(encoding="utf-8")
SAMPLES = re.findall(r"```ts\n(.*?)```", README, re.DOTALL)
STRICT = [
    *("--strict", "--noUncheckedIndexedAccess", "--exactOptionalPropertyTypes"),
    *("--target", "es2022", "--module", "nodenext", "--lib", "es2022,dom,dom.iterable"),
]
AMBIENT = "declare const process: { env: Partial<Record<string, string>> };\n"
# What the compiler refuses, and what it knows.
TYPED = """
// @ts-expect-error  a name is text
export const unnamed = () => petstore.pets.create({ name: 1, categoryId: 1 });
// @ts-expect-error  no member of a new animal
export const unknown = () => petstore.pets.create({ name: "Rex", categoryId: 1, id: 1 });
// @ts-expect-error  no status of an animal
export const misspelt = () => petstore.pets.list({ status: "availble" });
// @ts-expect-error  no code
export const never = (error: PetstoreError) => error.code === "conflicts";
export const optional = (cursor: string | undefined) => petstore.orders.page({ cursor, status: "placed" });
export const exact: number | bigint = rex.categoryId;
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as it is built."""
    program("node")
    node_module("typescript")
    return build(tmp_path_factory.mktemp("package"))


@pytest.fixture(scope="module")
def place(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the programs, and the package as npm installs it."""
    folder = tmp_path_factory.mktemp("programs")
    shutil.copytree(PROGRAMS, folder, dirs_exist_ok=True)
    with tarfile.open(package) as archive:
        archive.extractall(folder, filter="data")
    (folder / "node_modules").mkdir()
    (folder / "package").rename(folder / "node_modules" / "petstore-client")
    return folder


@pytest.fixture(scope="module")
def pages(place: Path) -> Iterator[str]:
    """The origin of a page that has the modules of the package."""
    modules = place / "node_modules" / "petstore-client" / "dist"
    handler = partial(_Quiet, directory=modules)
    with answering(ThreadingHTTPServer(("127.0.0.1", 0), handler)) as listening:
        yield f"http://localhost:{listening.server_port}"


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Be quiet."""


@pytest.fixture(scope="module")
def server(pages: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that the page may call; its key may do everything, with a large quota."""
    folder = tmp_path_factory.mktemp("server")
    key = issue_key(folder / "petstore.db", access=Access.MANAGE)
    with running_server(folder, access_log="off", cors_origins=pages) as started:
        started.key = key
        yield started


def run_program(place: Path, name: str, **variables: str) -> str:
    """What a program in Node.js printed."""
    done = run_tool([program("node"), name], place, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_types_are_those_of_the_contract() -> None:
    """The generated types are those of the contract; after its change run `python -m tools.typescript
    generate`. `tsc` then names each operation that the client lacks."""
    node_module("openapi-typescript")
    program("node")
    assert contract_types() == GENERATED.read_text(encoding="utf-8")


def test_the_same_sources_make_the_same_package(package: Path, place: Path, tmp_path: Path) -> None:
    """Byte for byte, with the version of the Python client, without a dependency; the service serves it."""
    described = json.loads((CLIENT / "package.json").read_text(encoding="utf-8"))
    assert described["version"] == petstore_client.__version__
    assert not {name for name in described if "ependencies" in name}
    served = ROOT / SERVED / package.name
    assert not differs(package, served), f"{served.name} is stale: make clients"
    compiled = place / "node_modules" / "petstore-client" / "dist"
    assert pack(compiled, tmp_path).read_bytes() == package.read_bytes()


def test_operations_in_node(place: Path, server: Server) -> None:
    """Pages, changes, typed errors, exact integers, events, signed deliveries, and a key that stays here."""
    assert run_program(place, "operations.mjs", BASE=server.base_url, KEY=server.key) == "all done\n"


def test_a_network_that_loses_requests_and_answers_adds_nothing_twice(server: Server, tmp_path: Path) -> None:
    """15 % of connections break before the request, 20 % after the service's answer. A follower goes on. The
    client is the one that the page's line installs, without an index of packages."""
    program("npm")
    shutil.copytree(PROGRAMS, tmp_path, dirs_exist_ok=True)
    page = server.request("GET", "/docs/clients.md").body.decode()
    line = next(code for language, code in fences(page) if language == "sh" and code.startswith("npm "))
    nobody = {"npm_config_registry": "http://127.0.0.1:1", "npm_config_cache": str(tmp_path / "cache")}
    installed = run_tool(["sh", "-c", line], tmp_path, **nobody)
    assert installed.returncode == 0, installed.stderr
    assert run_program(tmp_path, "losses.mjs", BASE=server.base_url, KEY=server.key) == "added once\n"


def test_what_may_have_taken_place_is_repeated_only_where_it_is_safe(place: Path) -> None:
    """Only safe calls repeat after lost or foreign answers and 503; pauses grow, within a call's seconds."""
    assert run_program(place, "faults.mjs") == "repeated what is safe\n"


async def test_limits_are_waited_for(place: Path, tmp_path: Path, clock: ManualClock) -> None:
    """A hundred calls at once on a plan of sixty a minute meet no refusal. Nothing is sent during a ban."""
    settings = {"ban_minimum_rejections": "2", "ban_grace": "100ms", "ban_durations": "1h"}
    async with open_shop(tmp_path, clock, **settings) as shop:
        free, _ = await shop.open_account("free")
        banned, _ = await shop.open_account("banned", "enterprise", 1, 99)
        answers = []
        for _ in range(5):
            clock.ms += 101
            answers.append((await shop.ask("GET", "/v1/usage", key=banned)).status)
        assert answers == [200, 429, 429, 429, 429]

        def application(exchange: Exchange) -> None:
            if not exchange.path.startswith(b"/steer/"):
                return shop.application(exchange)
            clock.ms += int(exchange.path.rpartition(b"/")[2])
            return exchange.answer(200, b"", b"")

        async with serving(application, connections=200) as served:
            host, port = served.address
            variables = {"BASE": f"http://{host}:{port}", "FREE": free, "BANNED": banned}
            printed = await asyncio.to_thread(run_program, place, "limits.mjs", **variables)
            assert printed == "never refused\n"


def test_the_samples_compile_strictly_and_run(place: Path, server: Server, tmp_path: Path) -> None:
    """README.md's samples, one after another in a user's file, compile strictly and run."""
    (place / "samples.mts").write_text("".join((AMBIENT, *SAMPLES, TYPED)), encoding="utf-8")
    compiled = run_tool([node_program("tsc"), *STRICT, "samples.mts"], place)
    assert compiled.returncode == 0, compiled.stdout
    printed = run_program(place, "samples.mjs", PETSTORE_URL=server.base_url, PETSTORE_KEY=server.key)
    for expected in ("Rex", "enterprise", "pet.created", "bookmark"):
        assert expected in printed


@pytest.mark.browser
def test_in_a_browser_on_a_page_of_another_origin(pages: str, server: Server) -> None:
    """The modules load as they are; it lists, adds and sees the code of an error."""
    with running_browser() as browser:
        page = browser.new_page()
        page.goto(pages)
        shown = page.evaluate(
            """async ([baseUrl, apiKey]) => {
              const { Petstore } = await import("/index.js");
              const petstore = new Petstore({ baseUrl, apiKey });
              const made = await petstore.pets.create({ name: "Bo", categoryId: 99 });
              const names = [];
              for await (const { name } of petstore.pets.list({ categoryId: 99 })) names.push(name);
              const error = await petstore.pets.get(1_000_000).catch((error) => error);
              const refused = await petstore.pets.create({ name: "", categoryId: 1 }).catch((error) => error);
              return [names, made.etag !== "", error.code, refused.code, refused.requestId !== "",
                petstore.limits.minute.remaining > 0];
            }""",
            [server.base_url, server.key],
        )
        assert shown == [["Bo"], True, "not_found", "invalid_body", True, True]
