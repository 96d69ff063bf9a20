// Sixty calls a minute, at a time that the service and this program share: a pause moves it.
import assert from "node:assert/strict";

import { Petstore, PetstoreError } from "petstore-client";
import { clock } from "./node_modules/petstore-client/dist/clock.js";

const { BASE, FREE, BANNED } = process.env;
let skipped = 0;
clock.now = () => skipped;
let steering = Promise.resolve();
clock.sleep = (ms, wakes) => {
  if (ms > 100_000) return new Promise((resolve) => wakes.addEventListener("abort", resolve)); // until an answer
  const until = clock.now() + ms;
  steering = steering.then(async () => {
    const left = until - clock.now();
    if (left <= 0 || wakes.aborted) return;
    await (await fetch(`${BASE}/steer/${Math.ceil(left)}`)).text();
    skipped += Math.ceil(left);
  });
  return steering;
};
const statuses = [];
const counted = async (...request) => {
  const response = await fetch(...request);
  statuses.push(response.status);
  return response;
};
const code = (failing) => failing.then(() => "none", (error) => (error instanceof PetstoreError ? error : Promise.reject(error)));

// A hundred at once on a plan of sixty: none is refused, and the last ones come a minute later.
const told = [];
const petstore = new Petstore({ baseUrl: BASE, apiKey: FREE, fetch: counted, onWait: (seconds) => told.push(seconds) });
await Promise.all(Array.from({ length: 100 }, () => petstore.usage()));
assert.deepEqual(statuses, Array(100).fill(200));
assert.ok(skipped > 50_000 && skipped < 62_000, `${skipped} ms`);
const { remaining } = petstore.limits.minute; // of the answer that came last: one before it may overtake it
assert.ok(remaining >= 20 && remaining < 60, `${remaining} remain`);
assert.equal(told.length, 1, String(told)); // of forty calls that wait for the same end
assert.ok(told[0] > 50 && told[0] <= 60);

// The window is used up: a call that may not wait so long fails at once, and sends nothing.
await Promise.all(Array.from({ length: 20 }, () => petstore.usage()));
const asked = skipped;
const early = await code(petstore.usage({ seconds: 5 }));
assert.equal(skipped, asked);
assert.equal(early.code, "rate_limited");
assert.ok(early.retryAfterSeconds > 50);
assert.equal(statuses.length, 120);

// Somebody else uses the same key: a refusal holds all calls, one of them repeats what was refused.
const before = skipped;
const other = new Petstore({ baseUrl: BASE, apiKey: FREE, fetch: counted });
statuses.length = 0;
await Promise.all([other.usage(), other.usage(), other.usage()]);
assert.equal(statuses.filter((status) => status === 429).length, 1);
assert.ok(skipped - before > 50_000);

// During a ban nothing is sent.
statuses.length = 0;
const banned = new Petstore({ baseUrl: BASE, apiKey: BANNED, seconds: 30, fetch: counted });
for (let each = 0; each < 5; each += 1) {
  const refused = await code(banned.usage());
  assert.equal(refused.code, "key_banned");
  assert.ok(refused.retryAfterSeconds > 30);
}
assert.deepEqual(statuses, [429]);
console.log("never refused");
