// The address and the key of a client, and one try of a call over the network.
import { PetstoreError } from "./errors.js";
import { Gate } from "./gate.js";
import { exact, parse, stringify } from "./json.js";
import { type Answer, type Call, type CallOptions, type Operation, ROUTES } from "./operations.js";
import { failure, type Failure } from "./verdict.js";

/** Of the failures of Node.js's fetch, those before anything was sent. A browser does not say. */
const NOT_SENT = ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "UND_ERR_CONNECT_TIMEOUT"];

/** Bytes of an answer, after decompression. A page of 100 animals is below 200 KB. */
const ANSWER_MAX_BYTES = 16 * 2 ** 20;

export interface ConnectionOptions extends Omit<CallOptions, "signal"> {
  /** The service's address, with or without `/v1`. */
  readonly baseUrl: string;
  readonly apiKey: string;
  /** Plain http to another machine, which shows the key to the network between. */
  readonly allowHttp?: boolean | undefined;
  /** Hears of each pause of a second or longer of this client, with its seconds. */
  readonly onWait?: ((seconds: number) => void) | undefined;
  /** Instead of the global one. */
  readonly fetch?: typeof fetch | undefined;
}

interface Request {
  readonly url: string;
  readonly init: RequestInit;
}

type Bounds = Readonly<Record<"tries" | "seconds" | "timeoutSeconds", number>>;

export class Connection {
  readonly gate: Gate;
  readonly #address: string;
  readonly #key: string;
  readonly #fetch: typeof fetch;
  readonly #bounds: Bounds;

  constructor({ baseUrl, apiKey, allowHttp = false, fetch = globalThis.fetch, onWait, ...bounds }: ConnectionOptions) {
    this.gate = new Gate(onWait);
    this.#address = checkedAddress(baseUrl, allowHttp);
    if (!/^pets_(live|test)_[0-9A-Za-z]{38}$/.test(apiKey)) {
      throw new TypeError("apiKey: expected pets_live_ or pets_test_, then 38 letters and digits.");
    }
    this.#key = apiKey;
    this.#fetch = (input, init) => fetch(input, init); // a browser's takes no other `this`
    this.#bounds = checkedBounds({ tries: 5, seconds: 300, timeoutSeconds: 30 }, bounds);
  }

  bounds(options: CallOptions): Bounds {
    return checkedBounds(this.#bounds, options);
  }

  /** What is sent for a call. Throws TypeError for an argument that can't be. */
  request(call: Call, idempotencyKey: string | undefined): Request {
    return { url: this.#url(call), init: this.#init(call, idempotencyKey) };
  }

  /** One try. Throws the reason of the caller's signal. */
  async send({ url, init }: Request, { operation, options }: Call, ms: number): Promise<Answer | Failure> {
    const signal = options?.signal;
    const ending = new AbortController();
    const end = (): void => ending.abort();
    signal?.addEventListener("abort", end);
    const timer = setTimeout(end, ms);
    try {
      signal?.throwIfAborted();
      const response = await this.#fetch(url, { ...init, signal: ending.signal });
      const { status, headers } = response; // 0 of a redirect in a browser
      return { status, headers, body: parsed(await textOf(response)) };
    } catch (error) {
      signal?.throwIfAborted();
      return fault(operation, error);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
    }
  }

  #url({ operation, path = {}, query = {} }: Call): string {
    const at = ROUTES[operation][1].replace(/\{(\w+)\}/g, (_, name: string) => segment(name, path[name]));
    const given = Object.entries(query).filter(([, value]) => value !== undefined);
    // An undefined item of a list is sent, to be refused: without it the list might be that of all.
    const pairs = given.flatMap(([name, value]) => [value].flat().map((each) => [name, each] as const));
    const written = pairs.map(([name, value]) => [name, typeof value === "string" ? value : exact(name, value)]);
    const search = new URLSearchParams(written).toString();
    return `${this.#address}${at}${search && `?${search}`}`;
  }

  #init({ operation, body, options }: Call, idempotencyKey: string | undefined): RequestInit {
    const headers = new Headers({ Accept: "application/json", Authorization: `Bearer ${this.#key}` });
    if (body !== undefined) headers.set("Content-Type", "application/json");
    if (idempotencyKey !== undefined) headers.set("Idempotency-Key", idempotencyKey);
    if (options?.ifMatch !== undefined) headers.set("If-Match", options.ifMatch);
    const method = ROUTES[operation][0];
    const content = body === undefined ? null : stringify(body);
    return { method, headers, body: content, redirect: "manual", credentials: "omit" };
  }
}

/** No text may name another path, such as "../store/orders/5". */
function segment(name: string, value: number | string | undefined): string {
  if (typeof value === "number" ? !Number.isSafeInteger(value) : !/^evt_[\w-]{1,100}$/.test(String(value))) {
    const expected = name === "eventId" ? "the id of an event" : "an integer";
    throw new TypeError(`${name}: expected ${expected}, got ${typeof value === "string" ? `"${value}"` : value}.`);
  }
  return String(value);
}

/** The whole body; empty where there is more of it than any answer of the service has. */
async function textOf({ body }: Response): Promise<string> {
  const reader = body?.getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (let size = 0; reader !== undefined; ) {
    const { done, value } = await reader.read();
    if (done) break;
    if ((size += value.length) > ANSWER_MAX_BYTES) {
      reader.cancel().catch(() => undefined); // of a clone it ends with the other one's
      return "";
    }
    text += decoder.decode(value, { stream: true });
  }
  return text + decoder.decode();
}

function parsed(text: string): unknown {
  try {
    return parse(text);
  } catch {
    return undefined;
  }
}

function fault(operation: Operation, cause: unknown): Failure {
  const reason = (cause as { cause?: unknown } | undefined)?.cause ?? {};
  const { code = "", syscall } = reason as { code?: string; syscall?: string };
  const isSent = syscall !== "connect" && !NOT_SENT.includes(code);
  const message = isSent ? `${operation} got no answer.` : `${operation} did not reach the service.`;
  return failure(new PetstoreError(isSent ? "no_answer" : "not_sent", message, { cause }), true, isSent);
}

function checkedAddress(baseUrl: string, allowHttp: boolean): string {
  const url = new URL(baseUrl);
  const isLoopback = /^(localhost|.+\.localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname);
  if (url.protocol !== "https:" && !(url.protocol === "http:" && (isLoopback || allowHttp))) {
    throw new TypeError(`baseUrl: ${url.origin} would get the key unencrypted. Use https, or allowHttp in a trusted network.`);
  }
  if (url.username || url.password || url.search || url.hash) {
    throw new TypeError("baseUrl: expected scheme, host and path alone.");
  }
  const path = url.pathname.replace(/\/+$/, "");
  if (path.includes("/v1/") && !path.endsWith("/v1")) {
    throw new TypeError("baseUrl: leave out what follows /v1, such as /pets.");
  }
  return `${url.origin}${path.endsWith("/v1") ? path : `${path}/v1`}`;
}

function checkedBounds(usual: Bounds, given: CallOptions): Bounds {
  const { tries = usual.tries, seconds = usual.seconds, timeoutSeconds = usual.timeoutSeconds } = given;
  if (!(tries >= 1 && seconds >= 0 && timeoutSeconds > 0 && timeoutSeconds <= 3_600)) {
    throw new TypeError("tries: at least 1; seconds: at least 0; timeoutSeconds: above 0, at most 3,600.");
  }
  return { tries, seconds, timeoutSeconds };
}
