"""Python clients made from the contract: whole, typed to the errors, and right against a real server."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT
from tests.support.machine import program
from tests.support.outside import python_program, run_tool
from tests.support.server import Server

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.xdist_group("consumers-python")]

# Adds an animal, reads it, and meets a 404 and a 400; `assert_type` is for mypy.
OPENAPI_PYTHON_CLIENT = """
import os
from typing import Any, assert_type
from shop import AuthenticatedClient
from shop.api.pets import create_pet, get_pet, list_pets
from shop.models import Error, NewPet, Pet

client = AuthenticatedClient(base_url=os.environ["BASE"], token=os.environ["KEY"])
made = create_pet.sync(client=client, body=NewPet(name="Rex", category_id=1))
assert_type(made, Error | Pet | None)
assert isinstance(made, Pet)
listed = list_pets.sync(client=client, id=[made.id])
assert_type(listed, Any | Error | list[Pet] | None)  # Any: a 304 has no body
assert listed == [made]
missing = get_pet.sync(made.id + 1000, client=client)
assert_type(missing, Any | Error | Pet | None)
assert isinstance(missing, Error)
refused = create_pet.sync(client=client, body=NewPet(name="", category_id=1))
assert isinstance(refused, Error)
print(missing.code, missing.status, refused.code, refused.status)
"""
OPENAPI_GENERATOR = """
import os
import shop

configuration = shop.Configuration(host=os.environ["BASE"], access_token=os.environ["KEY"])
with shop.ApiClient(configuration) as client:
    pets = shop.PetsApi(client)
    made = pets.create_pet(shop.NewPet(name="Rex", categoryId=1))
    assert pets.list_pets(id=[made.id]) == [made]
    try:
        pets.get_pet(made.id + 1000)
    except shop.ApiException as error:
        missing = error.data
    try:
        pets.update_pet(2**62, shop.PetChange(name="Rex"))
    except shop.ApiException as error:
        refused = error.data
assert isinstance(missing, shop.Error), missing
assert isinstance(refused, shop.Error), refused
print(missing.code, missing.status, refused.code, refused.status)
"""


def test_openapi_python_client_drops_nothing_and_types_errors(
    server: Server, contract: Path, tmp_path: Path
) -> None:
    """It warns of nothing, so no response is left out; mypy knows an Error as one of the answers; and the
    answers to real requests are that."""
    tool = python_program("openapi-python-client")
    command = [str(tool), "generate", "--path", str(contract), "--output-path", "shop", "--meta", "none"]
    done = run_tool([*command, "--fail-on-warning"], tmp_path, PATH=str(tool.parent))  # there is ruff
    assert done.returncode == 0, done.stdout + done.stderr
    assert "warning" not in (done.stdout + done.stderr).lower()
    used = tmp_path / "used.py"
    used.write_text(OPENAPI_PYTHON_CLIENT)
    options = ["--strict", "--follow-imports=silent", f"--cache-dir={ROOT}/.mypy_cache/consumers"]
    options += ["--python-executable", str(python_program("python"))]
    checked = run_tool([sys.executable, "-m", "mypy", *options, used], tmp_path)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert _run(used, server) == "not_found 404 invalid_body 400\n"


def test_openapi_generator_gives_errors_their_class(server: Server, contract: Path, tmp_path: Path) -> None:
    """An exception of its Python client carries the Error of the contract, not a class without types."""
    program("java")
    tool = python_program("openapi-generator-cli")
    options = ["-i", str(contract), "-g", "python", "-o", ".", "--additional-properties=packageName=shop"]
    done = run_tool([str(tool), "generate", *options], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    used = tmp_path / "used.py"
    used.write_text(OPENAPI_GENERATOR)
    assert _run(used, server) == "not_found 404 not_found 404\n"


def _run(used: Path, server: Server) -> str:
    """What a program prints that uses the client beside it."""
    done = run_tool(
        [python_program("python"), used], used.parent, BASE=f"{server.base_url}/v1", KEY=server.key
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
