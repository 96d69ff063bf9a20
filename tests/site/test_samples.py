"""The samples of the reference, as its page shows them, run in their languages against a real server."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import indent

import pytest

from petstore.core.keys import Access, mint
from tests.support.backends import in_store
from tests.support.journal import ACTOR
from tests.support.samples import Finished, run_bash, run_node, run_python
from tests.support.server import Server, issue_key, running_server
from tools.servers.ports import free_port

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.xdist_group("site-samples")]

# Each goes on where the one before it ended: the order is placed, approved and cancelled, the animal sold,
# the webhook tested and removed.
ORDER = (
    "listPets", "listCategories", "getUsage", "getPet", "createPet", "placeOrder", "listOrders",
    "updateOrder", "cancelOrder", "updatePet", "deletePet", "listEvents", "createWebhook", "listWebhooks",
    "getWebhook", "updateWebhook", "rotateWebhookSecret", "testWebhook", "listDeliveries", "redeliver",
    "rehearseEvent", "deleteWebhook",
)  # fmt: skip
# An event of the examples: an id is of one store.
EVENT = "evt_9f86d081884c_1207"
MORE_THAN_A_PAGE = 25
# How each language runs, says that the next sample begins, and keeps the names of one sample to itself.
LANGUAGES: dict[str, tuple[Callable[..., Finished], str, Callable[[str], str]]] = {
    "curl": (run_bash, "printf '\\n@@ %s\\n' {}", str),
    "Python": (run_python, 'print("@@ {}")', str),
    "requests": (run_python, 'print("@@ {}")', str),
    "JavaScript": (run_node, 'console.log("@@ {}");', lambda code: f"{{\n{indent(code, '  ')}\n}}"),
}
_SAMPLE = re.compile(r'<p class="language">(\w+)</p>\s*<pre[^>]*><code[^>]*>(.*?)</code>', re.S)


@pytest.fixture(scope="module", params=LANGUAGES)
def language(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def server(language: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """More than a page of animals and a named category; its links are absolute for JavaScript."""
    folder = tmp_path_factory.mktemp("samples")

    key, port = issue_key(folder / "petstore.db", "shop", access=Access.MANAGE), free_port()
    in_store(f"sqlite:///{folder}/petstore.db", lambda store: store.categories.name(1, "Dogs", ACTOR))
    base_url = f"http://127.0.0.1:{port}/v1" if language == "JavaScript" else None
    # Nobody listens there, so that a test of a webhook fails at once.
    settings = {"access_log": "off", "webhook_proxy": "http://127.0.0.1:1", "stage": "staging"}
    with running_server(folder, port=port, base_url=base_url, **settings) as started:
        started.key = key
        for number in range(1, MORE_THAN_A_PAGE + 1):
            assert started.post({"name": f"Animal {number}", "categoryId": 1}).status == 201
        yield started


def shown(server: Server, language: str) -> dict[str, str]:
    """The samples that the page shows in a language, by operation."""
    page = server.request("GET", "/docs/reference", key="").body.decode()
    sections = re.split(r'<section id="(\w+)"', page)[1:]
    return {
        name: html.unescape(re.sub("<[^>]+>", "", dict(_SAMPLE.findall(section))[language]))
        for name, section in zip(sections[::2], sections[1::2], strict=True)
        if _SAMPLE.search(section)
    }


def test_every_sample_does_what_it_says(language: str, server: Server, tmp_path: Path) -> None:
    """All operations, one after the other, with the answers that they print and the store that they leave."""
    samples = shown(server, language)
    assert samples.keys() == set(ORDER)
    [event] = server.request("GET", "/v1/events?limit=1&type=pet.created").json()
    assert EVENT in samples["redeliver"]
    samples["redeliver"] = samples["redeliver"].replace(EVENT, event["id"])
    run, tell, kept = LANGUAGES[language]
    source = "".join(f"{tell.format(name)}\n{kept(samples[name])}\n" for name in ORDER)
    output = run(source, {"PETSTORE_KEY": server.key}, folder=tmp_path).succeeded()
    _, *parts = re.split(r"^@@ (\w+)$", output, flags=re.M)
    printed = dict(zip(parts[::2], parts[1::2], strict=True))
    last = 'rel="next"' if language == "curl" else f"Animal {MORE_THAN_A_PAGE}"
    assert last in printed["listPets"], "the walk ended before the last page"
    expected = {
        "rehearseEvent": "pet.created",
        "listCategories": "Dogs", "getUsage": "enterprise", "getPet": "Animal 7", "createPet": "Rex",
        "placeOrder": "placed", "listOrders": "placed", "updateOrder": "approved", "updatePet": "sold",
        "listEvents": "pet.created", "createWebhook": "shop.example", "listWebhooks": "shop.example",
        "getWebhook": "shop.example", "updateWebhook": "order.*", "rotateWebhookSecret": "shop.example",
        "testWebhook": "webhook.test", "listDeliveries": "webhook.test",
    }  # fmt: skip
    assert {name: text in printed[name] for name, text in expected.items()} == dict.fromkeys(expected, True)
    assert not (printed["cancelOrder"] + printed["deletePet"] + printed["deleteWebhook"]).strip()
    assert server.request("GET", "/v1/webhooks").json() == []
    [order] = server.request("GET", "/v1/store/orders").json()
    assert (order["petId"], order["status"]) == (_number(samples["placeOrder"]), "cancelled")
    assert server.request("GET", f"/v1/pets?id={_number(samples['deletePet'])}").json() == []
    [new] = server.request("GET", f"/v1/pets?id={MORE_THAN_A_PAGE + 1}").json()
    assert (new["name"], new["status"]) == ("Rex", "available")


def _number(sample: str) -> int:
    """The identifier of the animal that a sample is about."""
    found = re.search(r"""(?:pets/|delete\(|petId\W+|pet_id=)(\d+)""", sample)
    assert found, sample
    return int(found[1])


@pytest.mark.parametrize("operation", ["listPets", "createPet"])
def test_a_refusal_ends_a_sample_with_its_code(
    language: str, server: Server, tmp_path: Path, operation: str
) -> None:
    """A sample fails with an unknown key, and says `unauthorized`: no program goes on as if all were well."""
    run, _, _ = LANGUAGES[language]
    done = run(shown(server, language)[operation], {"PETSTORE_KEY": mint("test")}, folder=tmp_path)
    assert done.code != 0
    assert "unauthorized" in (done.output + done.errors).lower()
