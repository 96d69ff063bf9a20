"""An agent's client with the tools that FastMCP makes of the contract, by the program of docs/mcp.md."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from petstore.core.events import WAIT_MAX_SECONDS
from tests.docs.documents import ROOT, fences, text_of
from tests.support.outside import python_program, run_tool
from tests.support.server import Server

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.xdist_group("consumers-python")]

ANIMALS = 5
# Calls every tool once or more, and meets refusals.
AGENT = """
import asyncio, json
from fastmcp import Client
from fastmcp.exceptions import ToolError

async def use(agent):
    called = set()

    async def call(tool, **arguments):
        called.add(tool)
        try:
            answer = await agent.call_tool(tool, arguments)
        except ToolError as error:
            return str(error)
        found = answer.structured_content
        return found["result"] if found and found.keys() == {"result"} else found

    pages, after = [], {}
    while not pages or len(pages[-1]) == 2:
        pages.append(await call("listPets", categoryId=5, limit=2, **after))
        after = {"after": pages[-1][-1]["id"]}
    print([len(page) for page in pages], len({pet["id"] for page in pages for pet in page}))
    first = await call("createPet", name="Rex", categoryId=1)
    second = await call("createPet", name="Mia", categoryId=2**62)
    assert await call("listPets", id=[first["id"], second["id"]]) == [first, second]
    assert await call("getPet", petId=second["id"]) == second
    print(await call("getPet", petId=10**6))
    print(await call("createPet", name="", categoryId=1))
    assert (await call("updatePet", petId=second["id"], name="Bo"))["name"] == "Bo"
    await call("deletePet", petId=second["id"])
    assert await call("listCategories") == []
    order = await call("placeOrder", petId=first["id"])
    assert (await call("updateOrder", orderId=order["id"], status="approved"))["status"] == "approved"
    assert [each["id"] for each in await call("listOrders")] == [order["id"]]
    await call("cancelOrder", orderId=order["id"])
    assert (await call("getUsage"))["plan"] == "enterprise"
    assert len(await call("listEvents", limit=7)) == 7
    hook = await call("createWebhook", url="https://shop.example/hook")
    assert (await call("getWebhook", webhookId=hook["id"]))["id"] == hook["id"]
    assert (await call("updateWebhook", webhookId=hook["id"], description="of an agent"))["enabled"]
    assert not (await call("testWebhook", webhookId=hook["id"]))["delivered"]
    [tried] = await call("listDeliveries", webhookId=hook["id"])
    again = await call("redeliver", webhookId=hook["id"], eventId=tried["eventId"])
    assert again["eventId"] == tried["eventId"]
    assert (await call("rotateWebhookSecret", webhookId=hook["id"]))["secret"] != hook["secret"]
    assert len(await call("listWebhooks")) == 1
    await call("deleteWebhook", webhookId=hook["id"])
    assert "not_found" in await call("rehearseEvent", type="pet.created")  # of staging alone
    tools = await agent.list_tools()
    assert called == {tool.name for tool in tools}, called
    print(sum(len(tool.model_dump_json(by_alias=True, exclude_none=True)) for tool in tools))

async def main():
    async with Client(json.load(open("agent.json"))) as agent:
        await use(agent)

asyncio.run(main())
"""


def test_an_agent_pages_and_calls_every_tool(server: Server, tmp_path: Path) -> None:
    """It reads a list by `after`, and sees our messages; its tools are as long as the page says. Neither
    program logs anything of values that it could not take."""
    for _ in range(ANIMALS):
        assert server.post({"name": "Rex", "categoryId": ANIMALS}).status == 201
    text = text_of(ROOT / "src" / "petstore" / "site" / "documents" / "mcp.md")
    [program, configuration] = (code for _, code in fences(text))
    (tmp_path / "petstore_mcp.py").write_text(program)
    told = json.loads(configuration)
    petstore = told["mcpServers"]["petstore"]
    assert petstore["command"] == "python"
    petstore["command"] = str(python_program("python"))
    petstore["env"] = {"PETSTORE_URL": f"{server.base_url}/v1", "PETSTORE_KEY": server.key}
    petstore["env"]["FASTMCP_CHECK_FOR_UPDATES"] = "off"
    (tmp_path / "agent.json").write_text(json.dumps(told))
    (tmp_path / "agent.py").write_text(AGENT)
    done = run_tool([python_program("python"), "agent.py"], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    pages, missing, refused, characters = done.stdout.splitlines()
    [stated] = re.findall(r"about ([0-9,]+) characters", text)
    assert int(characters) == pytest.approx(int(stated.replace(",", "")), rel=0.1)
    assert pages == "[2, 2, 1] 5"
    assert "404" in missing
    assert "There is no such animal." in missing
    assert "400" in refused
    assert "name: expected 1 to 255 characters, got 0." in refused
    assert "coercible" not in done.stderr


def test_the_agents_program_waits_as_long_as_an_answer_may_be_held_back() -> None:
    """A program that gives up sooner tells the agent of a lost answer, and the agent asks again for ever."""
    [seconds] = re.findall(r"timeout=([0-9]+)", text_of(ROOT / "docs" / "mcp.md"))
    assert int(seconds) > WAIT_MAX_SECONDS
