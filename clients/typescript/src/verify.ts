// Is a request to a webhook the service's? Signatures by Standard Webhooks 1.0, with WebCrypto.
import type { Event } from "./contract.js";
import { PetstoreError } from "./errors.js";
import { parse } from "./json.js";

/** The headers of a request: those of fetch, or of Node.js. */
export type RequestHeaders =
  | Iterable<readonly [string, string]>
  | Readonly<Record<string, string | readonly string[] | undefined>>;

export interface VerifyOptions {
  /** How much older or younger than `now` the request may be. Default 300. */
  readonly toleranceSeconds?: number | undefined;
  /** Unix time in seconds; default now. */
  readonly now?: number | undefined;
}

/**
 * The event of a request to a webhook; throws `invalid_signature`, TypeError for a wrong secret. `body` is as it came,
 * byte for byte. Give several secrets while one takes the place of another. The service sends an event again when it
 * got no answer: it has the same `id`. Ignore unknown types.
 */
export async function verify(
  body: string | Uint8Array | ArrayBuffer,
  headers: RequestHeaders,
  secret: string | readonly string[],
  { toleranceSeconds = 300, now = Date.now() / 1_000 }: VerifyOptions = {},
): Promise<Event> {
  const keys = await Promise.all([secret].flat().map(keyOf));
  const pairs = isIterable(headers) ? [...headers] : Object.entries(headers);
  const given = new Map(pairs.map(([name, value]) => [name.toLowerCase(), value]));
  const [id, timestamp, signatures] = ["webhook-id", "webhook-timestamp", "webhook-signature"].map((name) => {
    const value = given.get(name);
    if (typeof value !== "string" || value === "") throw invalid(`The request has no ${name}.`);
    return value;
  }) as [string, string, string];
  if (!/^\d{1,12}$/.test(timestamp)) throw invalid("webhook-timestamp is no Unix time.");
  if (Math.abs(now - Number(timestamp)) > toleranceSeconds) throw invalid(`The request was signed at ${timestamp}.`);
  const content = typeof body === "string" ? new TextEncoder().encode(body) : new Uint8Array(body);
  const begin = new TextEncoder().encode(`${id}.${timestamp}.`);
  const signed = new Uint8Array(begin.length + content.length);
  signed.set(begin);
  signed.set(content, begin.length);
  for (const signature of signatures.split(" ")) {
    const bytes = signature.startsWith("v1,") ? fromBase64(signature.slice(3)) : undefined;
    if (bytes === undefined) continue;
    for (const key of keys) {
      if (await crypto.subtle.verify("HMAC", key, bytes, signed)) return parse(new TextDecoder().decode(content)) as Event;
    }
  }
  throw invalid("No signature fits. The body has to be as it came, not parsed and written again.");
}

function isIterable(headers: RequestHeaders): headers is Iterable<readonly [string, string]> {
  return Symbol.iterator in headers;
}

async function keyOf(secret: string): Promise<CryptoKey> {
  const bytes = secret.startsWith("whsec_") ? fromBase64(secret.slice(6)) : undefined;
  if (bytes === undefined || bytes.length < 24 || bytes.length > 64) {
    throw new TypeError("secret: expected whsec_, then 32 bytes in Base64.");
  }
  return crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(text), (each) => each.charCodeAt(0));
  } catch {
    return undefined;
  }
}

function invalid(message: string): PetstoreError {
  return new PetstoreError("invalid_signature", `${message} Answer 400, and do nothing else.`);
}
