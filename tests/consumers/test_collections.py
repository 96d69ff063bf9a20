"""The contract as a collection of Postman and of Bruno: every request works as it was imported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.outside import node_program, run_tool, save_contract
from tests.support.server import Server

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


# No example has the id of an event of this store, and only staging rehearses.
NOT_FOUND = dict.fromkeys(["Send an event once more", "Send an event that has not happened"], 404)


def operations(contract: Path) -> list[str]:
    """What an import calls its requests: the summaries of all operations."""
    paths = json.loads(contract.read_text())["paths"].values()
    return sorted(each["summary"] for path in paths for each in path.values() if "operationId" in each)


def test_postman_runs_the_collection_as_imported(fresh_server: Server, tmp_path: Path) -> None:
    """Filled with the contract's examples, optional parameters too, each request but two succeeds in the
    order of the collection. Only the key is filled in. (Postman's other way puts "<long>" for numbers.)"""
    contract = save_contract(fresh_server, tmp_path)
    options = "parametersResolution=Example,enableOptionalParameters=true"
    imported = run_tool(
        [node_program("openapi2postmanv2"), "-s", contract, "-o", "collection.json", "-O", options], tmp_path
    )
    assert imported.returncode == 0, imported.stdout + imported.stderr
    key = f"bearerToken={fresh_server.key}"
    reporter = ["--reporters", "json", "--reporter-json-export", "report.json"]
    done = run_tool([node_program("newman"), "run", "collection.json", "--env-var", key, *reporter], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    ran = json.loads((tmp_path / "report.json").read_text())["run"]["executions"]
    assert sorted(each["item"]["name"] for each in ran) == operations(contract)
    answers = {each["item"]["name"]: each["response"]["code"] for each in ran}
    assert {name: code for name, code in answers.items() if code >= 300} == NOT_FOUND


def test_bruno_runs_the_collection_as_imported(fresh_server: Server, tmp_path: Path) -> None:
    """Each request but two succeeds in the order of the collection, with the environment of the import and a
    key."""
    contract = save_contract(fresh_server, tmp_path)
    bruno = node_program("bru")
    imported = run_tool([bruno, "import", "openapi", "-s", contract, "-o", ".", "-n", "shop"], tmp_path)
    assert imported.returncode == 0, imported.stdout + imported.stderr
    [environment] = (tmp_path / "shop" / "environments").iterdir()
    chosen = ["--env", environment.stem, "--env-var", f"token={fresh_server.key}"]
    done = run_tool([bruno, "run", "-r", *chosen, "--reporter-json", "report.json"], tmp_path / "shop")
    assert done.returncode == 0, done.stdout + done.stderr
    [report] = json.loads((tmp_path / "shop" / "report.json").read_text())
    ran = {each["name"]: each["response"]["status"] for each in report["results"]}
    assert sorted(ran) == operations(contract)
    assert {name: status for name, status in ran.items() if status >= 300} == NOT_FOUND
