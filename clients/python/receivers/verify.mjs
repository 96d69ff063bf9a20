// Is a request to a webhook the service's? With Node.js alone: take it into your program as it is.
import { createHmac, timingSafeEqual } from "node:crypto";

const TOLERANCE_SECONDS = 300;

// The event of a request; throws when it is not the service's. `body` is the Buffer as it came.
export function verify(body, headers, secret) {
  const { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signatures } = headers;
  if (!id || !signatures || !/^\d{1,12}$/.test(timestamp)) throw new Error("A header is missing.");
  if (Math.abs(Date.now() / 1000 - timestamp) > TOLERANCE_SECONDS) throw new Error("Its time is wrong.");
  const key = Buffer.from(secret.replace("whsec_", ""), "base64");
  if (key.length < 24) throw new Error("There is no secret.");
  const digest = createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest("base64");
  const expected = Buffer.from(`v1,${digest}`);
  const fits = signatures
    .split(" ")
    .map((each) => Buffer.from(each))
    .some((each) => each.length === expected.length && timingSafeEqual(each, expected));
  if (!fits) throw new Error("No signature fits.");
  return JSON.parse(body);
}
