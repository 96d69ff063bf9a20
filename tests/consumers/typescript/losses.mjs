// Creations and a follower through a network that loses requests and answers.
import assert from "node:assert/strict";

import { Petstore } from "petstore-client";
import "./hurried.mjs";
import { lossy } from "./lossy.mjs";

const COUNT = 40;
const { address, dropped, end } = await lossy(process.env.BASE, 7);
const petstore = new Petstore({ baseUrl: address, apiKey: process.env.KEY, tries: 20, seconds: 10_000 });
const follow = petstore.events.follow({ after: (await petstore.events.list({ after: "now" })).after, types: ["pet.*"] });

const names = Array.from({ length: COUNT }, (_, at) => `Lost ${at}`);
const made = await Promise.all(names.map((name) => petstore.pets.create({ name, categoryId: 77 })));
assert.equal(new Set(made.map(({ id }) => id)).size, COUNT);

const listed = [];
for await (const pet of petstore.pets.list({ categoryId: 77, pageSize: 15 })) listed.push(pet.name);
assert.deepEqual(listed.sort(), names.sort());

const heard = new Set();
for await (const event of follow) {
  heard.add(event.data.id);
  if (heard.size === COUNT) break;
}
assert.deepEqual([...heard].sort(), made.map(({ id }) => id).sort());
assert.ok(dropped.before > 3 && dropped.after > 3, JSON.stringify(dropped));
end();
console.log("added once");
