// Makes types of the contract: it comes as JSON from standard input, TypeScript goes to standard output. What the
// client does not show is left out: headers, examples, answers that are errors.
import { createRequire } from "node:module";
import { text } from "node:stream/consumers";

const require = createRequire(new URL("../../tests/consumers/package.json", import.meta.url));
const { default: generate, astToString } = require("openapi-typescript");
const ts = require("typescript");

const contract = JSON.parse(await text(process.stdin));
const { schemas, parameters } = contract.components;

const shown = (given = []) =>
  given.map((each) => parameters[each.$ref?.split("/").at(-1)] ?? each).filter((each) => each.in !== "header");

for (const item of Object.values(contract.paths)) {
  item.parameters = shown(item.parameters);
  for (const operation of Object.values(item).filter((each) => each.operationId)) {
    operation.parameters = shown(operation.parameters);
    for (const [status, answer] of Object.entries(operation.responses)) {
      if (status.startsWith("2")) delete answer.headers;
      else delete operation.responses[status];
    }
  }
}

// The contract has the codes as examples, since there may be more of them later.
const { code } = schemas.Error.properties;
code.enum = code.examples;
contract.components = { schemas };
delete contract.webhooks;
JSON.stringify(contract, function (name, value) {
  if (name === "example" || (name === "examples" && !value.type)) delete this[name];
  return value;
});

const number = ts.factory.createKeywordTypeNode(ts.SyntaxKind.NumberKeyword);
const bigint = ts.factory.createKeywordTypeNode(ts.SyntaxKind.BigIntKeyword);
const either = ts.factory.createUnionTypeNode([number, bigint]);
const ast = await generate(contract, {
  rootTypes: true,
  rootTypesNoSchemaPrefix: true,
  defaultNonNullable: false,
  // Every int64 may be a category's; all other integers stay below 2^53.
  transform: (_, { path }) => (/\/(categoryId|Category\/id)$/.test(path) ? either : undefined),
});
process.stdout.write("// Made by `python -m tools.typescript generate`: change the contract instead.\n\n");
process.stdout.write(astToString(ast));
