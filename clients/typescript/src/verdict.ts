// Judges an answer: success or error, whether to try again, whether anything may have changed.
import { type ErrorCode, PetstoreError } from "./errors.js";
import { serviceTime } from "./limits.js";
import { type Answer, type Operation, ROUTES } from "./operations.js";

const WAIT_MAX_SECONDS = 86_400;
const CHANGED_NOTHING: readonly ErrorCode[] = ["request_timeout", "internal_error", "unavailable"];
const TRANSIENT = [408, 429, 500, 502, 503, 504];
// These do not show the outcome of an earlier try: they come before the operation, or (412) our own first try may
// have changed the tag.
const INCONCLUSIVE = [401, 403, 412, 429];

/** Why a try did not succeed. */
export interface Failure {
  readonly error: PetstoreError;
  /** Another try may succeed. */
  readonly transient: boolean;
  /** The change may have been made. */
  readonly unknown: boolean;
  /** No try so far changed anything. */
  readonly conclusive: boolean;
}

export function failure(error: PetstoreError, transient = false, unknown = false, conclusive = false): Failure {
  return { error, transient, unknown, conclusive };
}

/** The failure of an answer; undefined for one of success. */
export function judge(operation: Operation, answer: Answer): Failure | undefined {
  const { status } = answer;
  const [method] = ROUTES[operation];
  if (status === 0 || (status >= 300 && status < 400)) return failure(redirect(status));
  const isService = method === "DELETE" ? status === 204 : isOfContract(operation, answer.body);
  if (status < 300 && isService) return undefined;
  if (status < 300) {
    const message = `The answer ${status} is not the service's. Is baseUrl the service's?`;
    return failure(new PetstoreError("unexpected_answer", message, { status }), false, true);
  }
  const error = errorOf(answer);
  if (status === 429) return failure(error, true);
  if (error.code === "idempotency_key_in_use") return failure(error, true, true);
  if (CHANGED_NOTHING.includes(error.code)) return failure(error, true);
  if (status >= 500 || status === 408) return failure(error, TRANSIENT.includes(status), true);
  const removedSince = status === 404 && method === "PATCH";
  return failure(error, false, false, !INCONCLUSIVE.includes(status) && !removedSince);
}

/** Lists are arrays, and all else objects. */
function isOfContract(operation: Operation, body: unknown): boolean {
  const isList = operation.startsWith("list") || operation === "rehearseEvent";
  return typeof body === "object" && body !== null && Array.isArray(body) === isList;
}

function redirect(status: number): PetstoreError {
  const message =
    "The address redirects. Redirects are not followed, so that the key goes nowhere else; give the service's own address.";
  return new PetstoreError("redirect_refused", message, { status: status || undefined });
}

function errorOf({ status, headers, body }: Answer): PetstoreError {
  const requestId = headers.get("X-Request-Id") ?? undefined;
  const details = { status, requestId, retryAfterSeconds: retryAfterSeconds(headers) };
  const { code, message } = (body ?? {}) as { code?: unknown; message?: unknown };
  if (typeof code === "string" && typeof message === "string") {
    return new PetstoreError(code as ErrorCode, message, details);
  }
  return new PetstoreError(`http_${status}`, `An answer of ${status} that is not the service's.`, details);
}

/** `Retry-After` in either of its forms; the longest of several, since a proxy may have added one. */
export function retryAfterSeconds(headers: Headers): number | undefined {
  const text = headers.get("Retry-After") ?? "";
  const isDate = /^[A-Z].* GMT$/.test(text); // Date.parse takes "2, 3" for the second of March
  const given = isDate ? [(Date.parse(text) - serviceTime(headers)) / 1_000] : text.split(",").map(secondsOf);
  const seconds = Math.max(...given);
  return Number.isNaN(seconds) ? undefined : Math.min(Math.max(seconds, 0), WAIT_MAX_SECONDS);
}

function secondsOf(text: string): number {
  return /^\d+(\.\d+)?$/.test(text.trim()) ? Number(text) : NaN;
}
