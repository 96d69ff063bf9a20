// Every operation on a real service, as a program uses them.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { buffer } from "node:stream/consumers";

import { Petstore, PetstoreError, verify } from "petstore-client";

const { BASE, KEY } = process.env;
const petstore = new Petstore({ baseUrl: BASE, apiKey: KEY });
const fails = (failing, code) =>
  assert.rejects(failing, (error) => error instanceof PetstoreError && error.code === code && error.message !== "");
const all = async (items) => {
  const found = [];
  for await (const each of items) found.push(each);
  return found;
};

const start = (await petstore.events.list({ after: "now" })).after;

// Animals, over several pages.
const names = Array.from({ length: 250 }, (_, at) => `Page ${at}`);
const pets = await Promise.all(names.map((name) => petstore.pets.create({ name, categoryId: 5 })));
const ids = pets.map(({ id }) => id).sort((one, other) => one - other);
const walked = await all(petstore.pets.list({ categoryId: 5 }));
assert.deepEqual(walked.map(({ id }) => id), ids);
let cursor;
let paged = 0;
do {
  const page = await petstore.pets.page({ categoryId: 5, limit: 60, cursor });
  paged += page.items.length;
  cursor = page.nextCursor;
} while (cursor !== undefined);
assert.equal(paged, 250);
assert.deepEqual((await petstore.pets.getMany([...ids, ...ids, 10 ** 9])).map(({ id }) => id), ids);
assert.deepEqual(await all(petstore.pets.list({ ids: [] })), []);
const [id, second] = ids;
const { etag } = await petstore.pets.get(id);
assert.equal((await petstore.pets.update(id, { name: "Rex" }, { ifMatch: etag })).name, "Rex");
await fails(petstore.pets.update(id, { name: "Bo" }, { ifMatch: etag }), "precondition_failed");
await petstore.pets.delete(id);
await fails(petstore.pets.get(id), "not_found");
await fails(petstore.pets.create({ name: "", categoryId: 5 }), "invalid_body");
await fails(petstore.pets.page({ cursor: "AAAAAAAAAAAAAAAB" }), "invalid_parameter");
await fails(new Petstore({ baseUrl: BASE, apiKey: `pets_test_${"0".repeat(38)}` }).usage(), "unauthorized");

// What is not an identifier finds nothing, never the first of all.
for (const absent of [undefined, null]) {
  await fails(petstore.pets.get(absent), "invalid_parameter");
  await fails(petstore.orders.get(absent), "invalid_parameter");
  await fails(petstore.pets.getMany([absent]), "invalid_parameter");
  await fails(all(petstore.pets.list({ ids: [absent] })), "invalid_parameter");
}
await assert.rejects(petstore.pets.delete("7"), { name: "TypeError", message: 'petId: expected an integer, got "7".' });
await assert.rejects(petstore.webhooks.redeliver(1, "7"), { message: 'eventId: expected the id of an event, got "7".' });

// An integer above 2^53 is exact, both ways, and never rounded.
const huge = 9_007_199_254_740_993n;
assert.equal((await petstore.pets.create({ name: '"categoryId":9007199254740993', categoryId: huge })).categoryId, huge);
assert.deepEqual((await petstore.pets.page({ categoryId: huge })).items.map(({ categoryId }) => categoryId), [huge]);
await assert.rejects(async () => petstore.pets.create({ name: "Rex", categoryId: 2 ** 53 }), TypeError);

// Orders, categories, usage.
const order = await petstore.orders.place({ petId: second }, { idempotencyKey: "order-1" });
assert.equal((await petstore.orders.place({ petId: second }, { idempotencyKey: "order-1" })).id, order.id);
await fails(petstore.orders.place({ petId: second }), "conflict");
assert.equal((await petstore.orders.update(order.id, { status: "approved" })).status, "approved");
assert.deepEqual((await petstore.orders.page({ status: "approved" })).items.map((each) => each.id), [order.id]);
const shipDate = "2030-01-01T00:00:00.000Z";
assert.equal((await petstore.orders.update(order.id, { shipDate })).shipDate, shipDate);
assert.equal((await petstore.orders.update(order.id, { shipDate: null })).shipDate, undefined);
await petstore.orders.cancel(order.id, { ifMatch: (await petstore.orders.get(order.id)).etag });
assert.equal((await all(petstore.orders.list({ scope: "all" })))[0].status, "cancelled");
assert.deepEqual(await petstore.categories.list(), []);
assert.equal((await petstore.usage()).plan, "enterprise");

// Webhooks: what the service has signed is verified, what somebody changed is not.
let arrived;
const received = new Promise((resolve) => (arrived = resolve));
const receiver = createServer(async (request, response) => {
  arrived({ body: await buffer(request), headers: request.headers });
  response.writeHead(204).end();
});
await new Promise((resolve) => receiver.listen(0, "127.0.0.1", resolve));
const url = `http://127.0.0.1:${receiver.address().port}/hook`;
const webhook = await petstore.webhooks.create({ url, types: ["order.*"] });
const tried = await petstore.webhooks.test(webhook.id);
assert.equal(tried.delivered, true);
const { body, headers } = await received;
assert.equal((await verify(body, headers, webhook.secret)).id, tried.eventId);
assert.equal((await verify(body.toString(), new Headers(headers), [webhook.secret])).type, "webhook.test");
const { secret } = await petstore.webhooks.rotateSecret(webhook.id);
await fails(verify(body, headers, secret), "invalid_signature");
await fails(verify(`${body} `, headers, webhook.secret), "invalid_signature");
await fails(verify(body, { ...headers, "webhook-id": "evt_1" }, webhook.secret), "invalid_signature");
await fails(verify(body, headers, webhook.secret, { now: Date.now() / 1_000 + 310 }), "invalid_signature");
await fails(verify(body, {}, webhook.secret), "invalid_signature");
await assert.rejects(verify(body, headers, "whsec_"), TypeError);
await fails(petstore.webhooks.rehearse("pet.created"), "not_found");
assert.equal((await all(petstore.webhooks.deliveries(webhook.id)))[0].eventId, tried.eventId);
assert.equal((await petstore.webhooks.redeliver(webhook.id, tried.eventId)).eventId, tried.eventId);
assert.equal((await petstore.webhooks.update(webhook.id, { enabled: false })).enabled, false);
assert.equal((await petstore.webhooks.get(webhook.id)).enabled, false);
assert.equal((await petstore.webhooks.list()).length, 1);
await petstore.webhooks.delete(webhook.id);
receiver.close();
receiver.closeAllConnections();

// Events: from a bookmark none is missed, and at most 99 come again.
async function take(after, count) {
  const following = petstore.events.follow({ after, types: ["pet.created"] });
  const taken = [];
  for await (const event of following) if (taken.push(event.data.id) === count) break;
  return [taken, following.after];
}
const [begun, bookmark] = await take(start, 150);
const [resumed] = await take(bookmark, 150);
assert.deepEqual([...new Set([...begun, ...resumed])].sort((one, other) => one - other), ids);
assert.ok(begun.filter((each) => resumed.includes(each)).length < 100);

// Events: a follower waits, and ends with its signal.
const ending = new AbortController();
const follow = petstore.events.follow({ types: ["pet.created"], signal: ending.signal });
const first = follow.next();
while (follow.after === "now") await new Promise(setImmediate);
const late = await petstore.pets.create({ name: "Late", categoryId: 6 });
assert.equal((await first).value.data.id, late.id);
const waiting = follow.next();
setImmediate(() => ending.abort());
await assert.rejects(waiting, { name: "AbortError" });

// The key goes to the given address alone.
const elsewhere = createServer((_, response) => response.writeHead(307, { Location: `${BASE}/v1/usage` }).end());
await new Promise((resolve) => elsewhere.listen(0, "127.0.0.1", resolve));
const redirected = new Petstore({ baseUrl: `http://127.0.0.1:${elsewhere.address().port}`, apiKey: KEY });
await fails(redirected.usage(), "redirect_refused");
const { port } = elsewhere.address();
elsewhere.close();
elsewhere.closeAllConnections();
assert.throws(() => new Petstore({ baseUrl: "http://pets.example", apiKey: KEY }), TypeError);
assert.throws(() => new Petstore({ baseUrl: BASE, apiKey: "" }), TypeError);
await fails(new Petstore({ baseUrl: `http://127.0.0.1:${port}`, apiKey: KEY, tries: 1 }).usage(), "not_sent");
console.log("all done");
