"""docs/errors.md against the catalogue of errors: an entry for each code, where error responses link to."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from petstore.core.errors import BY_CODE
from petstore.site.documents import render
from tests.docs.documents import ROOT, fences, text_of
from tests.support.samples import run_bash
from tests.support.server import issue_key, running_server
from tests.support.service import Shop

_TEXT = text_of(ROOT / "docs" / "errors.md")
_ENTRY = re.compile(
    r"### `(?P<code>[a-z_]+)`\n\nStatus (?P<status>[0-9]{3})\. .+?\n\n"
    r"[A-Z`](?:(?!\n\n)[^*])+(?P<retry>\*\*Retry\*\* (?:(?!\n\n).)+)?\n+",
    re.S,
)
_SECTIONS = re.findall(r"^### .+?(?=^#|\Z)", _TEXT, re.M | re.S)
_ENTRIES = {entry["code"]: entry for entry in map(_ENTRY.fullmatch, _SECTIONS) if entry}
RETRIED = {
    "request_timeout", "rate_limited", "key_banned", "idempotency_key_in_use", "internal_error",
    "unavailable", "outcome_unknown",
}  # fmt: skip


def test_each_code_has_an_entry() -> None:
    """It has the status, what to do, and whether a retry helps; there is no entry for anything else."""
    assert {code: int(entry["status"]) for code, entry in _ENTRIES.items()} == {
        code: error.status for code, error in BY_CODE.items()
    }


def test_the_page_says_which_errors_pass() -> None:
    """A retry is advised for what passes by itself, and for nothing else."""
    assert {code for code, entry in _ENTRIES.items() if entry["retry"]} == RETRIED


async def test_a_status_leads_to_its_codes(shared_shop: Shop) -> None:
    """The page has each as an anchor, with all its codes; the list of contents has it before each code."""
    page = (await shared_shop.call("GET", "/docs/errors")).body.decode()
    rows = {
        int(status): re.findall(r'<a href="#(\w+)">', row)
        for status, row in re.findall(r'<tr id="(\d+)">(.*?)</tr>', page)
    }
    assert {code: status for status, codes in rows.items() for code in codes} == {
        code: error.status for code, error in BY_CODE.items()
    }
    for code, error in BY_CODE.items():
        listed = code.replace("_", "_<wbr>")
        assert f'<a href="#{code}">{error.status} {listed}</a>' in page


def test_the_anchor_of_an_entry_is_its_code() -> None:
    """`docs/errors#CODE` leads to the entry: in the service's page."""
    anchors = [heading.anchor for heading in render(_TEXT, "../").headings if heading.level == 3]
    assert sorted(anchors) == sorted(BY_CODE)


def requests_of_the_page() -> dict[str, str]:
    """The request that has a code, by code: the page's command is `POST /pets`, the list names the others."""
    others = re.findall(r"^\* `(\w+ /\S+)`: (.+)$", _TEXT, re.M)
    named = {code: request for request, codes in others for code in re.findall(r"`(\w+)`", codes)}
    return {code: named.get(code, "POST /pets") for code in BY_CODE}


@pytest.mark.e2e
def test_the_curl_of_the_page_brings_each_error_about(tmp_path: Path) -> None:
    """The curl line of the page brings about each error's code and status in staging, with a default key."""
    ((language, command),) = fences(_TEXT)
    assert (language, command.partition("\n")[0]) == ("sh", "CODE=rate_limited")
    adding = '--json \'{"name": "Mia", "categoryId": 2}\''
    assert all(command.count(part) == 1 for part in ('$PETSTORE_URL/pets"', adding))
    source = ""
    for code, request in requests_of_the_page().items():
        method, path = request.split()
        line = command.replace("CODE=rate_limited", f"CODE={code}")
        if method != "POST":
            line = line.replace('/pets"', f'{path}"').replace(adding, f"-X {method}")
        source += f"{line.rstrip()} -s\necho\n"
    key = issue_key(tmp_path / "petstore.db")
    with running_server(tmp_path, stage="staging") as server:
        output = run_bash(source, {"PETSTORE_URL": f"{server.base_url}/v1", "PETSTORE_KEY": key}).succeeded()
    statuses = map(int, re.findall(r"^HTTP/1.1 (\d+)", output, re.M))
    found = list(zip(re.findall(r'"code":"(\w+)"', output), statuses, strict=True))
    assert found == [(code, error.status) for code, error in BY_CODE.items()]
