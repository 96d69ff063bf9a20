// One call from its beginning to its answer: its turn, its tries, its pauses.
import { clock, pause } from "./clock.js";
import type { Connection } from "./connection.js";
import { PetstoreError } from "./errors.js";
import type { Permit } from "./gate.js";
import { type Answer, type Call, ROUTES } from "./operations.js";
import { type Failure, judge } from "./verdict.js";

const FIRST_PAUSE_MS = 500;
const PAUSE_MAX_MS = 30_000;
const DOUBLINGS = 10;
// The service keeps an Idempotency-Key for 24 hours; a repetition after that would be a second creation.
const REPEATABLE_MS = 23 * 3_600_000;

export class CallRun {
  readonly #connection: Connection;
  readonly #call: Call;
  readonly #signal: AbortSignal | undefined;
  readonly #request: ReturnType<Connection["request"]>;
  readonly #changes: boolean;
  readonly #repeatable: boolean;
  readonly #idempotencyKey: string | undefined;
  readonly #tries: number;
  readonly #timeoutMs: number;
  readonly #beginsBy: number;
  readonly #endsAt: number;
  #sent = 0;
  #faults = 0;
  #unknown = false; // an earlier try may have taken place
  #firstSent: readonly [number, number] | undefined; // by both clocks: one may stop while the machine sleeps

  constructor(connection: Connection, call: Call) {
    const { options = {}, waitSeconds = 0, followsAt } = call;
    const { tries, seconds, timeoutSeconds } = connection.bounds(options);
    const [method] = ROUTES[call.operation];
    const now = clock.now();
    const spanMs = followsAt === undefined ? seconds * 1_000 : Infinity;
    this.#connection = connection;
    this.#call = call;
    this.#signal = options.signal;
    this.#idempotencyKey = call.creates ? (options.idempotencyKey ?? crypto.randomUUID()) : undefined;
    this.#request = connection.request(call, this.#idempotencyKey);
    this.#changes = method !== "GET";
    // A PATCH might undo what somebody else changed meanwhile, unless it takes place only in the state that was seen.
    const isConditional = options.ifMatch !== undefined && options.ifMatch !== "*";
    this.#repeatable = !["POST", "PATCH"].includes(method) || call.creates === true || isConditional;
    this.#tries = followsAt === undefined ? tries : Infinity;
    this.#timeoutMs = (timeoutSeconds + waitSeconds) * 1_000;
    // A try that is cut short leaves an unknown outcome, so each begins with time for its answer.
    this.#beginsBy = now + spanMs - Math.min(1_000, spanMs / 10);
    this.#endsAt = now + (spanMs || timeoutSeconds * 1_000) + waitSeconds * 1_000;
  }

  /** The answer of success; throws PetstoreError, or the reason of the signal. */
  async run(): Promise<Answer> {
    let earlier: PetstoreError | undefined;
    for (;;) {
      const permit = await this.#enter(earlier);
      const outcome = await this.#send(permit);
      if (!("error" in outcome)) return outcome;
      if (this.#foundRemoved(outcome)) return { status: 204, headers: new Headers(), body: undefined };
      earlier = outcome.error;
      await this.#pause(outcome);
    }
  }

  async #enter(earlier: PetstoreError | undefined): Promise<Permit> {
    const { gate } = this.#connection;
    const { followsAt, waitSeconds } = this.#call;
    if (followsAt !== undefined) {
      let opensAt: number;
      while ((opensAt = Math.max(gate.ampleAt(), followsAt)) > clock.now()) await pause(opensAt, this.#signal);
    }
    try {
      const permit = await gate.enter(this.#beginsBy, (waitSeconds ?? 0) > 0, this.#signal);
      if (earlier === undefined || !this.#isForgotten(0)) return permit;
      gate.withdrawn(permit);
    } catch (error) {
      if (!(error instanceof PetstoreError)) throw error;
      throw this.#ended(earlier ?? error);
    }
    throw this.#ended(earlier);
  }

  async #send(permit: Permit): Promise<Answer | Failure> {
    this.#sent += 1;
    this.#firstSent ??= [clock.now(), Date.now()];
    const { gate } = this.#connection;
    const ms = Math.min(this.#timeoutMs, this.#endsAt - clock.now());
    let outcome: Answer | Failure;
    try {
      outcome = await this.#connection.send(this.#request, this.#call, ms);
    } catch (error) {
      gate.lost(permit); // the caller's signal
      throw error;
    }
    const failure = "error" in outcome ? outcome : judge(this.#call.operation, outcome);
    if ("error" in outcome) gate[outcome.unknown ? "lost" : "withdrawn"](permit);
    else this.#inform(permit, outcome, failure?.error);
    return failure ?? outcome;
  }

  /** Lets the gate know what an answer says. */
  #inform(permit: Permit, answer: Answer, error: PetstoreError | undefined): void {
    const { gate } = this.#connection;
    const hasLimits = gate.answered(permit, answer.headers);
    const isRefused = answer.status === 429;
    if (answer.status < 300) gate.passed(permit);
    if (error === undefined || (!isRefused && answer.status !== 503)) return;
    const left = Object.values(gate.limits ?? {}).every(({ remaining }) => remaining > 0);
    // Tests of webhooks have a limit of their own.
    if (isRefused && error.code !== "key_banned" && this.#call.operation === "testWebhook" && hasLimits && left) return;
    if (isRefused && error.code !== "key_banned") gate.refused();
    const pauseMs = error.retryAfterSeconds === undefined ? 0 : error.retryAfterSeconds * 1_000;
    if (pauseMs > 0 || isRefused) gate.hold(pauseMs || this.#backoff(), error);
  }

  /** Waits before the next try, or throws why there is none. */
  async #pause(failure: Failure): Promise<void> {
    const { error } = failure;
    const isRefusal = error.status === 429;
    if (!isRefusal) this.#faults += 1;
    if (this.#changes) this.#unknown = (this.#unknown || failure.unknown) && !failure.conclusive;
    const asked = (error.retryAfterSeconds ?? 0) * 1_000;
    const pauseMs = isRefusal ? asked : Math.max(asked, this.#backoff());
    const resumesAt = clock.now() + pauseMs;
    const mayRepeat = failure.transient && (this.#repeatable || !failure.unknown);
    const isSpent = this.#faults >= this.#tries || resumesAt > this.#beginsBy;
    if (!mayRepeat || isSpent || this.#isForgotten(pauseMs)) throw this.#ended(error);
    while (clock.now() < resumesAt) await pause(resumesAt, this.#signal);
  }

  /** Exponential, with full jitter. */
  #backoff(): number {
    return clock.random() * Math.min(PAUSE_MAX_MS, FIRST_PAUSE_MS * 2 ** Math.min(this.#sent - 1, DOUBLINGS));
  }

  /** Whether the service may have forgotten the key of a creation that may have taken place. */
  #isForgotten(pauseMs: number): boolean {
    if (!this.#unknown || this.#firstSent === undefined) return false;
    const age = Math.max(clock.now() - this.#firstSent[0], Date.now() - this.#firstSent[1]);
    return age + pauseMs > REPEATABLE_MS;
  }

  /** Whether a repeated removal found nothing, so an earlier try removed it. */
  #foundRemoved({ error }: Failure): boolean {
    return error.code === "not_found" && this.#unknown && ["deletePet", "deleteWebhook"].includes(this.#call.operation);
  }

  #ended(error: PetstoreError): PetstoreError {
    error.outcomeUnknown = this.#unknown;
    error.idempotencyKey = this.#idempotencyKey;
    return error;
  }
}
