// The one class of errors, which `code` discriminates.
import type { Error as ServiceError } from "./contract.js";

/** Codes of the client: there was no answer, or not one of the service. `docs/errors` of the service has the others. */
export type ClientCode = "not_sent" | "no_answer" | "redirect_refused" | "unexpected_answer" | "invalid_signature";

/** Later versions of the service may have further codes: treat an unknown one by `status`. */
export type ErrorCode = ServiceError["code"] | ClientCode | `http_${number}`;

export interface ErrorDetails {
  readonly status?: number | undefined;
  readonly requestId?: string | undefined;
  readonly retryAfterSeconds?: number | undefined;
  readonly cause?: unknown;
}

/** Why a call did not succeed. */
export class PetstoreError extends Error {
  override readonly name = "PetstoreError";
  readonly code: ErrorCode;
  /** Of the answer; undefined without one. */
  readonly status: number | undefined;
  /** The operator's log has the request under it. */
  readonly requestId: string | undefined;
  /** After so many seconds the same call may succeed. */
  readonly retryAfterSeconds: number | undefined;
  /** Whether a change may or may not have taken place: look before you repeat it. */
  outcomeUnknown = false;
  /** Of a creation: with it the same call is safe to repeat for 24 hours. */
  idempotencyKey: string | undefined = undefined;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    this.status = details.status;
    this.requestId = details.requestId;
    this.retryAfterSeconds = details.retryAfterSeconds;
  }
}
