"""TypeScript clients by many generators: they compile strictly, and each does the same on a real service."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.machine import program
from tests.support.outside import NODE_MODULES, node_program, python_program, run_tool
from tests.support.server import Server

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.xdist_group("consumers-generators"),
    pytest.mark.timeout(600),  # the first one generates and compiles for all: 40 s of processor time
]

# All in one category, and no page of two holds them.
ANIMALS, CATEGORY = 5, 6
_OPTIONS = {
    "strict": True,
    "target": "es2022",
    "module": "nodenext",
    "lib": ["es2022", "dom", "dom.iterable"],
}
# What libraries declare does not concern the contract, and takes most of the time.
_OPTIONS |= {"types": [], "rewriteRelativeImportExtensions": True, "skipLibCheck": True}


class Generator(NamedTuple):
    """A generator's command, for `openapi.json` in its folder, and how its client is called: `create`, `list`
    with a query, and `update` of an animal that does not exist, which is its error.
    """

    command: str
    client: str
    config: str = ""


GENERATORS = {
    "hey-api": Generator(
        "openapi-ts -i openapi.json -o shop",
        """
import { createPet, listPets, updatePet } from "./shop";
import { client } from "./shop/client.gen";
client.setConfig({ auth: KEY });
const body = { name: "Rex", categoryId: 1 };
const create = async () => (await createPet({ body, throwOnError: true })).data;
const list = async (query: Query) => (await listPets({ query, throwOnError: true })).data;
const update = async (petId: number) => (await updatePet({ path: { petId }, body: { name: "Bo" } })).error;
""",
    ),
    "kubb": Generator(
        "kubb generate",
        """
import type { AxiosError } from "axios";
import { createPet, listPets, updatePet, type UpdatePet404 } from "./shop";
import { setConfig } from "./shop/.kubb/fetch";
setConfig({ baseURL: BASE, headers: { Authorization: `Bearer ${KEY}` } });
const create = () => createPet({ name: "Rex", categoryId: 1 });
const list = (query: Query) => listPets(query);
const refusal = (error: AxiosError<UpdatePet404>) => error.response?.data;
const update = (id: number) => updatePet(id, { name: "Bo" }).then(fail, refusal);
""",
        """
import { defineConfig } from "@kubb/core";
import { pluginClient } from "@kubb/plugin-client";
import { pluginOas } from "@kubb/plugin-oas";
import { pluginTs } from "@kubb/plugin-ts";
const plugins = [pluginOas({ generators: [] }), pluginTs(), pluginClient({ client: "axios", bundle: true })];
const output = { path: "shop", format: false, lint: false };
export default defineConfig({ input: { path: "openapi.json" }, output, plugins });
""",
    ),
    "oazapfts": Generator(
        "oazapfts openapi.json shop.ts",
        """
import { createPet, defaults, listPets, updatePet } from "./shop";
defaults.headers = { Authorization: `Bearer ${KEY}` };
const create = async () => {
  const made = await createPet({ name: "Rex", categoryId: 1 });
  return made.status === 201 ? made.data : fail();
};
const list = async (query: Query) => {
  const page = await listPets(query);
  return page.status === 200 ? page.data : fail();
};
const update = async (id: number) => {
  const refused = await updatePet(id, { name: "Bo" });
  return refused.status === 404 ? refused.data : fail();
};
""",
    ),
    "openapi-typescript-codegen": Generator(
        # By its file: Redocly has a program of the same name.
        "../openapi-typescript-codegen/bin/index.js -i openapi.json -o shop -c fetch --useOptions",
        """
import { ApiError, OpenAPI, PetsService } from "./shop";
OpenAPI.TOKEN = KEY;
const create = () => PetsService.createPet({ requestBody: { name: "Rex", categoryId: 1 } });
const list = (query: Query) => PetsService.listPets(query);
const update = (petId: number) =>
  PetsService.updatePet({ petId, requestBody: { name: "Bo" } }).catch((error: ApiError) => error.body);
""",
    ),
    "openapi-generator": Generator(
        "openapi-generator-cli generate -i openapi.json -g typescript-fetch -o shop",
        """
import { Configuration, ModelErrorFromJSON, PetsApi, ResponseError } from "./shop";
const pets = new PetsApi(new Configuration({ basePath: BASE, accessToken: KEY }));
const create = () => pets.createPet({ newPet: { name: "Rex", categoryId: 1 } });
const list = (query: Query) => pets.listPets(query);
const refusal = async (failure: unknown) =>
  failure instanceof ResponseError ? ModelErrorFromJSON(await failure.response.json()) : fail();
const update = (petId: number) => pets.updatePet({ petId, petChange: { name: "Bo" } }).then(fail, refusal);
""",
    ),
    # With openapi-fetch. The README's smallest body is a whole new animal.
    "openapi-typescript": Generator(
        "openapi-typescript openapi.json -o schema.ts",
        """
import createClient from "openapi-fetch";
import type { paths } from "./schema";
const shop = createClient<paths>({ baseUrl: BASE, headers: { Authorization: `Bearer ${KEY}` } });
const body = { name: "Rex", categoryId: 1 };
const create = async () => (await shop.POST("/pets", { body })).data ?? fail();
const list = async (query: Query) => (await shop.GET("/pets", { params: { query } })).data ?? fail();
const update = async (petId: number) =>
  (await shop.PATCH("/pets/{petId}", { params: { path: { petId } }, body: { name: "Bo" } })).error;
""",
    ),
    "openapi-zod-client": Generator(
        "openapi-zod-client openapi.json -o shop.ts --export-schemas",
        """
import { isErrorFromAlias } from "@zodios/core";
import { createApiClient } from "./shop";
const shop = createApiClient(BASE, { axiosConfig: { headers: { Authorization: `Bearer ${KEY}` } } });
const create = () => shop.createPet({ name: "Rex", categoryId: 1 });
const list = (queries: Query) => shop.listPets({ queries });
const update = async (petId: number) => {
  const error = await shop.updatePet({ name: "Bo" }, { params: { petId } }).catch((error: unknown) => error);
  return isErrorFromAlias(shop.api, "updatePet", error) ? error.response.data : fail();
};
""",
    ),
}
# Lists by several identifiers, reads a list to its end with what its bodies say alone, and meets a 404. Were
# a member of an error without its type, `code` would not compile.
PROGRAM = """
declare const process: { env: Record<string, string> };
const { BASE, KEY } = process.env as { BASE: string; KEY: string };
type Query = { id?: number[]; categoryId?: number; limit?: number; after?: number };
const fail = (): never => { throw new Error("another answer"); };
CLIENT
const use = async () => {
  const ids = [(await create()).id, (await create()).id] as const;
  const listed = (await list({ id: [...ids] })).map(({ id }) => id);
  const walked: number[] = [];
  let after: number | undefined;
  do {
    const page = await list({ limit: 2, categoryId: 6, after });
    walked.push(...page.map(({ id }) => id));
    after = page.length < 2 ? undefined : page.at(-1)?.id;
  } while (after !== undefined);
  const error = await update(ids[1] + 1000);
  const [code, status]: [string | undefined, number | undefined] = [error?.code, error?.status];
  console.log(listed.length, new Set(walked).size, walked.length, code, status);
};
use();
"""


@pytest.fixture(scope="module")
def stocked(server: Server) -> Server:
    """The server, with a category that has three pages."""
    for _ in range(ANIMALS):
        assert server.post({"name": "Rex", "categoryId": CATEGORY}).status == 201
    return server


@pytest.fixture(scope="module")
def compiled(contract: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for each generator, with its client and a program that uses it, compiled strictly and at once:
    most of a compiler's time goes into its start."""
    place = tmp_path_factory.mktemp("generated")
    (place / "node_modules").symlink_to(NODE_MODULES)
    (place / "package.json").write_text("{}")
    for name, generator in GENERATORS.items():
        (place / name).mkdir()
        (place / name / "openapi.json").write_bytes(contract.read_bytes())
        (place / name / "kubb.config.mjs").write_text(generator.config)
        (place / name / "used.ts").write_text(PROGRAM.replace("CLIENT", generator.client))
        tool, *options = generator.command.split()
        of_java = tool == "openapi-generator-cli" and program("java")
        made = run_tool([(python_program if of_java else node_program)(tool), *options], place / name)
        assert made.returncode == 0, made.stdout + made.stderr
    project = {"compilerOptions": _OPTIONS, "files": [f"{name}/used.ts" for name in GENERATORS]}
    (place / "tsconfig.json").write_text(json.dumps(project))
    done = run_tool([node_program("tsc")], place)
    assert done.returncode == 0, done.stdout + done.stderr
    return place


@pytest.mark.parametrize("name", GENERATORS)
def test_a_generated_client_reads_lists_and_knows_errors(stocked: Server, compiled: Path, name: str) -> None:
    """It adds animals, finds several by their identifiers in one request, pages to the end by `after`, for
    its functions return no `Link`, and a 404 is the Error of the contract."""
    variables = {"BASE": f"{stocked.base_url}/v1", "KEY": stocked.key}
    done = run_tool([program("node"), "used.js"], compiled / name, **variables)
    assert done.stdout == "2 5 5 not_found 404\n", done.stdout + done.stderr
