"""Every sample of the documents that the service shows, run in its language against a real server.

A sample is a fenced block in bash, Python or JavaScript. Those of one language go on from each other and run
in one process. A block of `text` or `json` that follows a sample at once says what the sample prints. The
guide's retries also run against a server that drops and refuses: they wait, and add an animal once.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TypeVar

import pytest

from tests.docs.documents import ROOT, fences, text_of
from tests.docs.sessions import matches
from tests.support.loops import answering
from tests.support.receiver import receiving
from tests.support.samples import run_bash, run_node, run_python
from tests.support.server import Server, running_server
from tools.servers.petstore import run
from tools.servers.ports import free_port

# As the service shows it.
GUIDE = ROOT / "src" / "petstore" / "site" / "documents" / "guide.md"
_MARK = "@@ sample"
_BLOCK = re.compile(r"^```(?P<language>\w*)\n(?P<content>.*?)^```$", re.M | re.S)
# How each is run, and how it prints the mark. bash is first: it shows the identifiers of a new store.
_RUNNERS = {
    "sh": (run_bash, f"printf '\\n%s\\n' '{_MARK}'"),
    "python": (run_python, f'print("\\n{_MARK}")'),
    "js": (run_node, f'console.log("\\n{_MARK}");'),
}
LANGUAGES = tuple(_RUNNERS)
_Server = TypeVar("_Server", bound=ThreadingHTTPServer)
# What can't be run says so by its language.
SHOWN = ("json", "text")


@dataclass(frozen=True)
class Sample:
    """A fenced block. `printed` is what the document says that it prints, or None; `line` counts from 1."""

    language: str
    code: str
    line: int
    printed: list[str] | None = None


def samples(text: str) -> list[Sample]:
    """The samples of a document, in order."""
    found: list[Sample] = []
    end = -1
    for block in _BLOCK.finditer(text):
        language, content = block["language"], block["content"]
        if language in LANGUAGES:
            found.append(Sample(language, content, text.count("\n", 0, block.start()) + 1))
            end = block.end()
        elif language in SHOWN and end >= 0 and not text[end : block.start()].strip():
            sample = found.pop()
            found.append(Sample(sample.language, sample.code, sample.line, content.splitlines()))
            end = -1
    return found


def play(chosen: Sequence[Sample], folder: Path, environment: Mapping[str, str]) -> list[list[str]]:
    """Runs samples of one language in a process: the lines that each printed, empty ones left out.

    Fails unless all end well, and skips where the language's program is missing.
    """
    run, tell = _RUNNERS[chosen[0].language]
    source = "".join(f"{tell}\n{sample.code}\n" for sample in chosen)
    finished = run(source, environment, folder=folder)
    _, *printed = re.split(rf"^{_MARK}$", finished.output, flags=re.M)
    at = chosen[max(len(printed) - 1, 0)].line
    assert finished.code == 0, f"the sample of line {at} failed:\n{finished.errors}{finished.output[-2000:]}"
    return [[line for line in text.splitlines() if line.strip()] for text in printed]


ROOT_IN_DOCUMENT = "http://127.0.0.1:8080"
KEY_IN_DOCUMENT = "pets_live_YourOwnKeyStandsHere"
HOOK_IN_DOCUMENT = "https://shop.example/hook"
ANIMALS = 230
BEYOND_DOUBLES = 9_007_199_254_740_993


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A database with more than two pages of animals, and a key that may do everything."""
    folder = tmp_path_factory.mktemp("store")
    settings = {"database_url": f"sqlite:///{folder}/petstore.db"}
    stock = folder / "stock.csv"
    animals = ["Rex,1", *(f"Animal {number},3" for number in range(2, ANIMALS)), f"Nemo,{BEYOND_DOUBLES}"]
    stock.write_text("\n".join(["name,categoryId", *animals]), encoding="utf-8")
    printed = ""
    for line in (
        "db migrate",
        f"pets import {stock}",
        "accounts add shop --plan business",
        "keys issue shop --access manage --json",
    ):
        done = run(*line.split(), settings=settings)
        assert done.returncode == 0, done.stderr
        printed = done.stdout
    return folder / "petstore.db", json.loads(printed)["key"]


@pytest.fixture(scope="module", params=["by path", "by base address"])
def server(
    request: pytest.FixtureRequest, store: tuple[Path, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """A server whose links are paths, or whole addresses."""
    folder = tmp_path_factory.mktemp("server")
    database, key = store
    shutil.copy(database, folder)
    port = free_port()
    base_url = f"http://127.0.0.1:{port}/v1" if request.param == "by base address" else None
    with running_server(folder, port=port, base_url=base_url) as running:
        running.key = key
        yield running


def filled(text: str, server: Server, hook: str) -> str:
    """A document with this server's address and key, as its page shows the reader's own, and a receiver's."""
    for shown, own in (
        (ROOT_IN_DOCUMENT, server.base_url),
        (KEY_IN_DOCUMENT, server.key),
        (HOOK_IN_DOCUMENT, hook),
    ):
        text = text.replace(shown, own)
    return text


@pytest.fixture
def hook() -> Iterator[str]:
    """The address of a receiver that takes everything."""
    with receiving() as receiver:
        yield receiver.address


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.xdist_group("docs-samples")
@pytest.mark.parametrize("language", LANGUAGES)
def test_samples_do_what_the_guide_says(language: str, server: Server, hook: str, tmp_path: Path) -> None:
    """Each ends well and prints what stands below it; each walk reaches every animal, whatever its links."""
    chosen = [
        sample for sample in samples(filled(text_of(GUIDE), server, hook)) if sample.language == language
    ]
    printed = play(chosen, tmp_path, {"PETSTORE_URL": f"{server.base_url}/v1", "PETSTORE_KEY": server.key})
    for sample, lines in zip(chosen, printed, strict=True):
        if sample.printed is not None:
            assert matches(sample.printed, lines), (sample.line, lines)
        if "limit=100" in sample.code or "# all pages" in sample.code:
            assert sum(line.count("Animal ") for line in lines) >= ANIMALS - 10, sample.line


@pytest.mark.parametrize(
    ("document", "played"),
    [("guide.md", LANGUAGES), ("errors.md", LANGUAGES), ("quickstart.md", ("console",))],
)
def test_every_block_runs_or_says_that_it_does_not(document: str, played: tuple[str, ...]) -> None:
    """A language that nobody runs would hide a sample that is wrong. test_quickstart.py plays its own."""
    languages = {language for language, _ in fences(text_of(ROOT / "docs" / document))}
    assert languages <= {*played, *SHOWN}


RETRY_AFTER = 1
UNTIL_MIDNIGHT = 6_253
DROPPED = 0
SAID = "The limit of 1,000 requests per day is used up"


class Moody(ThreadingHTTPServer):
    """Answers each method as `script` says, then well. `seen`: each request's moment and Idempotency-Key.

    `retry_after` goes with all that is not well, in seconds.
    """

    def __init__(self, script: dict[str, list[int]], retry_after: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script = script
        self.retry_after = retry_after
        self.seen: dict[str, list[tuple[float, str]]] = {"GET": [], "POST": []}

    def pause_before_the_last(self, method: str) -> float:
        (before, _), (last, _) = self.seen[method][-2:]
        return last - before


class _Handler(BaseHTTPRequestHandler):
    server: Moody

    def do_GET(self) -> None:
        self._answer(200)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(201)

    def _answer(self, well: int) -> None:
        self.server.seen[self.command].append((time.monotonic(), self.headers.get("Idempotency-Key", "")))
        planned = self.server.script.get(self.command, [])
        status = planned.pop(0) if planned else well
        if status == DROPPED:
            return
        self.send_response(status)
        if status != well:
            self.send_header("Retry-After", str(self.server.retry_after))
        self.end_headers()
        self.wfile.write(json.dumps({"name": "Mia"} if status == well else {"message": SAID}).encode())

    def log_message(self, *_arguments: object) -> None:
        """Nothing."""


def moody(retry_after: int = RETRY_AFTER, **script: list[int]) -> AbstractContextManager[Moody]:
    return answering(Moody(script, retry_after))


def chosen(language: str, *parts: str) -> list[Sample]:
    """The guide's samples of a language that have one of the parts."""
    return [
        sample
        for sample in samples(text_of(GUIDE))
        if sample.language == language and any(part in sample.code for part in parts)
    ]


def surroundings(server: Moody) -> dict[str, str]:
    return {"PETSTORE_URL": f"http://127.0.0.1:{server.server_port}/v1", "PETSTORE_KEY": "pets_live_any"}


RETRY = {
    "python": ("requests.Session()", "def send("),
    "js": ("process.env.PETSTORE_KEY", "async function send("),
}
GATE = (*RETRY["python"], "def send_through_gate(")


@pytest.mark.e2e
@pytest.mark.parametrize("language", RETRY)
def test_a_retry_waits_and_keeps_its_key(language: str, tmp_path: Path) -> None:
    """Each sample retries a lost answer and a 503 with one Idempotency-Key, and waits as Retry-After says.

    Before each pause it prints how long that is, and why.
    """
    with moody(POST=[DROPPED, 503]) as server:
        *_, printed = play(chosen(language, *RETRY[language]), tmp_path, surroundings(server))
    lost, refused, last = printed
    assert re.match(r"Next try in 0\.\d s: .", lost)
    assert re.match(rf"Next try in [12]\.\d s: .*{SAID}", refused)
    assert last == "201 Mia"
    assert len({key for _, key in server.seen["POST"]}) == 1
    assert len(server.seen["POST"]) == 3
    assert server.pause_before_the_last("POST") >= RETRY_AFTER


@pytest.mark.e2e
def test_the_gate_closes_after_a_429(tmp_path: Path) -> None:
    """No process asks before Retry-After: here the one that was refused."""
    with moody(GET=[200, 429]) as server:
        *_, (said, printed) = play(chosen("python", *GATE), tmp_path, surroundings(server))
    assert re.match(rf"All wait for 1\.0 s: .*{SAID}", said)
    assert printed == "200"
    assert server.pause_before_the_last("GET") >= RETRY_AFTER


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("language", "parts", "script"),
    [
        ("python", RETRY["python"], {"POST": [429]}),
        ("python", GATE, {"GET": [200, 429]}),
        ("js", RETRY["js"], {"POST": [429]}),
    ],
    ids=["python", "gate", "js"],
)
def test_no_sample_waits_until_midnight(
    language: str, parts: tuple[str, ...], script: dict[str, list[int]], tmp_path: Path
) -> None:
    """A sample that meets the limit of a day ends at once, with what the answer says."""
    with moody(UNTIL_MIDNIGHT, **script) as server, pytest.raises(AssertionError, match=SAID):
        play(chosen(language, *parts), tmp_path, surroundings(server))


FOLLOWS = """
seen = mirror()
pets = next(seen)
first = min(pets)
api.patch(f"{base}/pets/{first}", json={"name": "Max"})
api.patch(f"{base}/pets/{first}", json={"categoryId": 7})
added = api.post(f"{base}/pets", json={"name": "Tim", "categoryId": 1}).json()["id"]
api.delete(f"{base}/pets/{added}")
added = api.post(f"{base}/pets", json={"name": "Tom", "categoryId": 1}).json()["id"]
for _ in range(5):
    next(seen)
listed = {pet["id"]: pet for pet in walk(f"{base}/pets?limit=100")}
print(pets == listed, pets[first]["name"], pets[added]["name"])
"""
BEGINS_ANEW = """
real, gone = link, [f"{base}/events?type=pet.*&after=000000000000-0-0"]


def link(response):
    return gone.pop() if gone else real(response)


seen = mirror()
pets = next(seen)
print(next(seen) is not pets, gone)
"""
IN_JS = """
const found = new Set();
for await (const event of follow(`${base}/events?limit=1&type=pet.*`)) {
  found.add(event.id);
  if (found.size === 3) break;
}
console.log(found.size);
"""


@pytest.mark.e2e
@pytest.mark.xdist_group("docs-samples")
@pytest.mark.parametrize("server", ["by path"], indirect=True)
@pytest.mark.parametrize(
    ("language", "opening", "driver", "expected"),
    [
        ("python", "requests.Session()", FOLLOWS, "True Max Tom"),
        ("python", "requests.Session()", BEGINS_ANEW, "True []"),
        ("js", "process.env.PETSTORE_KEY", IN_JS, "3"),
    ],
    ids=["follows", "begins anew", "js"],
)
def test_who_follows_gets_every_change(
    language: str, opening: str, driver: str, expected: str, server: Server, tmp_path: Path
) -> None:
    """The guide's copy is what the list shows, also after a 410; each page leads to the next one."""
    parts = (opening, "def walk(", "def send(", "def mirror(", "async function send(", "function* follow(")
    played = [*chosen(language, *parts), Sample(language, driver, 0)]
    *_, printed = play(
        played, tmp_path, {"PETSTORE_URL": f"{server.base_url}/v1", "PETSTORE_KEY": server.key}
    )
    assert printed == [expected]


SERVES = """
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(receive(body, self.headers, secrets))
        self.end_headers()

    def log_message(self, *arguments):
        pass


secrets = []
receiver = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
threading.Thread(target=receiver.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{receiver.server_port}/hook"
made = api.post(f"{base}/webhooks", json={"url": url, "types": ["pet.*"]}).json()
statuses = []
for known in (["whsec_" + "A" * 43 + "="], [made["secret"]]):
    secrets[:] = known
    statuses.append(api.post(f"{base}/webhooks/{made['id']}/test").json()["status"])
added = api.post(f"{base}/pets", json={"name": "Zoe", "categoryId": 1}).json()
while not any(event.data.get("name") == "Zoe" for event in list(seen.values())):
    time.sleep(0.05)
api.delete(f"{base}/webhooks/{made['id']}")
print(*statuses, [event.data["id"] for event in seen.values()] == [made["id"], added["id"]])
"""
SERVES_IN_JS = """
import { createServer } from "node:http";
import { buffer } from "node:stream/consumers";

let secret = `whsec_${"A".repeat(43)}=`;
const receiver = createServer(async (request, response) => {
  try {
    verify(await buffer(request), request.headers, secret);
    response.writeHead(204).end();
  } catch (error) {
    response.writeHead(400).end(error.message);
  }
});
await new Promise((resolve) => receiver.listen(0, "127.0.0.1", resolve));
async function call(path, body) {
  const options = { method: "POST", headers: { ...headers, "Content-Type": "application/json" }, body };
  return (await fetch(`${base}/webhooks${path}`, options)).json();
}
const url = `http://127.0.0.1:${receiver.address().port}/hook`;
const made = await call("", JSON.stringify({ url }));
const refused = await call(`/${made.id}/test`);
secret = made.secret;
const taken = await call(`/${made.id}/test`);
await fetch(`${base}/webhooks/${made.id}`, { method: "DELETE", headers });
receiver.close();
receiver.closeAllConnections();
console.log(refused.status, refused.answer, taken.status);
"""


@pytest.mark.e2e
@pytest.mark.xdist_group("docs-samples")
@pytest.mark.parametrize("server", ["by path"], indirect=True)
@pytest.mark.parametrize(
    ("language", "opening", "driver", "expected"),
    [
        ("python", "requests.Session()", SERVES, "400 204 True"),
        ("js", "process.env.PETSTORE_KEY", SERVES_IN_JS, "400 No signature fits. 204"),
    ],
    ids=["python", "js"],
)
def test_a_receiver_takes_what_the_service_has_signed(
    language: str, opening: str, driver: str, expected: str, server: Server, tmp_path: Path
) -> None:
    """Nothing that another secret has signed is taken."""
    parts = (opening, "def receive(", "function verify(", "import time")
    played = [*chosen(language, *parts), Sample(language, driver, 0)]
    *_, printed = play(
        played, tmp_path, {"PETSTORE_URL": f"{server.base_url}/v1", "PETSTORE_KEY": server.key}
    )
    assert printed == [expected]
