"""TypeScript clients made from the contract: the strict compiler takes them, and they work in Node.js."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.machine import program
from tests.support.outside import NODE_MODULES, node_program, python_program, run_tool
from tests.support.server import Server

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.xdist_group("consumers-typescript")]

_OPTIONS = {"strict": True, "target": "es2022", "lib": ["es2022", "dom", "dom.iterable"]}
_OPTIONS |= {"types": [], "skipLibCheck": True}
# The body is the README's smallest. Were a member of an error without its type, `code` would not compile.
OPENAPI_TYPESCRIPT = """
import createClient from "openapi-fetch";
import type { paths } from "./schema.js";
declare const process: { env: Record<string, string> };

const headers = { Authorization: `Bearer ${process.env.KEY}` };
const client = createClient<paths>({ baseUrl: process.env.BASE, headers });
const made = await client.POST("/pets", { body: { name: "Rex", categoryId: 1 } });
if (!made.data) throw new Error(made.error.message);
const id: number = made.data.id;
const listed = await client.GET("/pets", { params: { query: { id: [id] } } });
if (listed.data?.[0]?.name !== "Rex") throw new Error("not in the list");
const missing = await client.GET("/pets/{petId}", { params: { path: { petId: id + 1000 } } });
if (!missing.error) throw new Error("found");
const code: string = missing.error.code;
const status: number = missing.error.status;
console.log(code, status);
"""
TYPESCRIPT_FETCH = """
import { Configuration, ModelErrorFromJSON, PetsApi, ResponseError } from "./shop";
declare const process: { env: Record<string, string> };

const pets = new PetsApi(new Configuration({ basePath: process.env.BASE, accessToken: process.env.KEY }));
const use = async () => {
  const made = await pets.createPet({ newPet: { name: "Rex", categoryId: 1 } });
  const listed = await pets.listPets({ id: [made.id] });
  if (listed[0]?.name !== "Rex") throw new Error("not in the list");
  await pets.getPet({ petId: made.id + 1000 }).catch(async (failure: unknown) => {
    if (!(failure instanceof ResponseError)) throw failure;
    const error = ModelErrorFromJSON(await failure.response.json());
    const status: number = error.status;
    console.log(error.code, status);
  });
};
use();
"""


def test_openapi_typescript_takes_the_smallest_body_and_types_errors(
    server: Server, contract: Path, tmp_path: Path
) -> None:
    """With openapi-fetch, `{name, categoryId}` is a whole new animal, and an error has its members' types."""
    made = run_tool([node_program("openapi-typescript"), contract, "-o", "schema.ts"], tmp_path)
    assert made.returncode == 0, made.stdout + made.stderr
    (tmp_path / "node_modules").symlink_to(NODE_MODULES)
    (tmp_path / "package.json").write_text('{"type": "module"}\n')
    assert _run(OPENAPI_TYPESCRIPT, server, tmp_path, module="nodenext") == "not_found 404\n"


def test_openapi_generator_compiles_strictly(server: Server, contract: Path, tmp_path: Path) -> None:
    """The client that it makes for `fetch` compiles as it is, and gives the Error of the contract."""
    program("java")
    tool = python_program("openapi-generator-cli")
    done = run_tool([tool, "generate", "-i", contract, "-g", "typescript-fetch", "-o", "shop"], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert _run(TYPESCRIPT_FETCH, server, tmp_path, module="commonjs") == "not_found 404\n"


def _run(source: str, server: Server, folder: Path, *, module: str) -> str:
    """What a program prints, compiled with the client beside it."""
    (folder / "used.ts").write_text(source)
    project = {"compilerOptions": _OPTIONS | {"module": module}, "files": ["used.ts"]}
    (folder / "tsconfig.json").write_text(json.dumps(project))
    compiled = run_tool([node_program("tsc")], folder)
    assert compiled.returncode == 0, compiled.stdout + compiled.stderr
    done = run_tool([program("node"), "used.js"], folder, BASE=f"{server.base_url}/v1", KEY=server.key)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
