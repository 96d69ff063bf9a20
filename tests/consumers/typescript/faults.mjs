// What is repeated after a fault, and what is not, on a script of answers.
import assert from "node:assert/strict";

import { Petstore } from "petstore-client";
import { clock } from "./node_modules/petstore-client/dist/clock.js";

const pauses = [];
let time = 0;
clock.now = () => time;
clock.random = () => 1;
clock.sleep = async (ms) => {
  pauses.push(ms);
  time += ms;
};

// A client that gets these answers, undefined being a lost one, and its requests.
function scripted(...answers) {
  const requests = [];
  pauses.length = 0;
  const fetch = async (url, init) => {
    requests.push(init);
    const answer = answers.shift();
    if (answer === undefined) throw new TypeError("fetch failed");
    return answer.clone();
  };
  return [new Petstore({ baseUrl: "https://pets.example", apiKey: `pets_test_${"k".repeat(38)}`, fetch }), requests];
}
const rex = { id: 7, name: "Rex", categoryId: 1, status: "available" };
const ok = Response.json(rex);
const failure = (status, code, headers) => Response.json({ code, message: "So it is.", status }, { status, headers });
const settled = (promise) => promise.catch((error) => error);

// Pauses grow, and the fifth fault is the last.
{
  const [petstore, requests] = scripted();
  const error = await settled(petstore.pets.create({ name: "Rex", categoryId: 1 }));
  assert.deepEqual([error.code, error.outcomeUnknown, requests.length], ["no_answer", true, 5]);
  assert.deepEqual(pauses, [500, 1_000, 2_000, 4_000]);
  assert.deepEqual(new Set(requests.map(({ headers }) => headers.get("Idempotency-Key"))), new Set([error.idempotencyKey]));
}
// A change without ifMatch may undo another one.
{
  const [petstore, requests] = scripted(undefined, ok);
  const error = await settled(petstore.pets.update(7, { name: "Rex" }));
  assert.deepEqual([error.code, error.outcomeUnknown, requests.length], ["no_answer", true, 1]);
  const [again] = scripted(undefined, ok);
  assert.equal((await again.pets.update(7, { name: "Rex" }, { ifMatch: '"a"' })).name, "Rex");
  const [refused] = scripted(undefined, failure(412, "precondition_failed"));
  assert.equal((await settled(refused.pets.delete(7, { ifMatch: '"a"' }))).outcomeUnknown, true);
}
// 503 `unavailable` changed nothing, so that any call is repeated; `outcome_unknown` may have.
{
  const [petstore] = scripted(failure(503, "unavailable", { "Retry-After": "9" }), ok);
  await petstore.pets.update(7, { name: "Rex" });
  assert.equal(Math.max(...pauses), 9_000);
  const [other] = scripted(failure(503, "outcome_unknown"), ok);
  assert.equal((await settled(other.pets.update(7, { name: "Rex" }))).outcomeUnknown, true);
}
// The first try removed it.
{
  const [petstore] = scripted(undefined, failure(404, "not_found"));
  await petstore.pets.delete(7);
  const [never] = scripted(failure(404, "not_found"));
  assert.equal((await settled(never.pets.delete(7))).outcomeUnknown, false);
}
// Another server answers.
{
  const [petstore] = scripted(new Response("<p>Sign in</p>"));
  assert.equal((await settled(petstore.usage())).code, "unexpected_answer");
  const [proxy, requests] = scripted(...Array(5).fill(new Response("", { status: 502 })));
  assert.deepEqual([(await settled(proxy.usage())).code, requests.length], ["http_502", 5]);
}
// One whose JSON is none of the contract's, and one whose link has no address.
{
  for (const document of [null, {}, [], "Rex", 7]) {
    const isObject = document !== null && typeof document === "object" && !Array.isArray(document);
    const [petstore] = scripted(Response.json(document), Response.json(document));
    const [listed, made] = [await settled(petstore.pets.page()), await settled(petstore.orders.place({ petId: 7 }))];
    assert.equal(Array.isArray(document) ? undefined : "unexpected_answer", listed.code);
    assert.deepEqual(isObject ? [undefined, undefined] : ["unexpected_answer", true], [made.code, made.outcomeUnknown]);
  }
  const [petstore] = scripted(Response.json([], { headers: { Link: '<http://[x>; rel="next"' } }));
  assert.equal((await settled(petstore.events.list())).code, "unexpected_answer");
}
// A link to a next page that it does not name: the walk is not over.
{
  for (const link of ["?limit=100", "?cursor=", "?cursor", ""]) {
    const [petstore] = scripted(Response.json([rex], { headers: { Link: `</v1/pets${link}>; rel="next"` } }));
    const walking = petstore.pets.list().next();
    assert.equal((await settled(walking)).code, "unexpected_answer");
  }
}
// More than any answer of the service has, however small it was packed.
{
  const [petstore] = scripted(new Response(`[${" ".repeat(2 ** 24)}]`));
  assert.equal((await settled(petstore.pets.page())).code, "unexpected_answer");
  const [spaced] = scripted(new Response(`${" ".repeat(2 ** 23)}[]`));
  assert.deepEqual((await spaced.pets.page()).items, []);
}
// A Retry-After of a proxy: beside the service's, with a fraction, by the proxy's own clock.
{
  const at = (ms) => new Date(ms).toUTCString();
  for (const headers of [
    { "Retry-After": "7, 9" },
    { "Retry-After": "9.0" },
    { "Retry-After": at(9_000_000), Date: at(8_991_000) },
  ]) {
    const [petstore] = scripted(new Response("", { status: 503, headers }), ok);
    await petstore.usage();
    assert.equal(Math.max(...pauses), 9_000, JSON.stringify(headers));
  }
}
// Nothing was sent, whyever there is no connection.
{
  for (const [cause, code] of [
    [{ code: "ENETUNREACH", syscall: "connect" }, "not_sent"],
    [{ code: "EHOSTUNREACH", syscall: "read" }, "no_answer"],
  ]) {
    const fetch = () => Promise.reject(new TypeError("fetch failed", { cause }));
    const petstore = new Petstore({ baseUrl: "https://pets.example/v1/", apiKey: `pets_test_${"k".repeat(38)}`, fetch });
    const error = await settled(petstore.pets.update(7, { name: "Rex" }));
    assert.deepEqual([error.code, error.outcomeUnknown], [code, code === "no_answer"]);
  }
  assert.throws(() => new Petstore({ baseUrl: "https://pets.example/v1/pets", apiKey: `pets_test_${"k".repeat(38)}` }), TypeError);
}
// Numbers that are not integers stay numbers.
{
  const text = '{"a":0.30000000000000004,"b":1e-1000000000000000,"c":[-9007199254740993],"d":"9007199254740993"}';
  const [petstore] = scripted(new Response(text));
  assert.deepEqual(await petstore.usage(), { a: 0.1 + 0.2, b: 0, c: [-9007199254740993n], d: "9007199254740993" });
}
// A deadline, and a signal.
{
  const [petstore, requests] = scripted();
  assert.equal((await settled(petstore.usage({ seconds: 2 }))).code, "no_answer");
  assert.equal(requests.length, 3);
  assert.equal((await settled(petstore.usage({ signal: AbortSignal.abort() }))).name, "AbortError");
  assert.equal(requests.length, 3);
}
console.log("repeated what is safe");
