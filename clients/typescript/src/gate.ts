// The gate of a client: which call may be sent now, and until when all wait. Times are in milliseconds.
import { clock, pause } from "./clock.js";
import { PetstoreError } from "./errors.js";
import { type Limits, readWindows, type Window } from "./limits.js";

const WIDTH = 16; // calls at once
const SPAN_MS = 300_000; // the service bans a key after more than 60 refusals in this time
const REFUSALS = 3; // twenty processes with one key: 60 refusals
const RISKED = 60; // refusals, and calls without an answer, each of which may have been one
const GRACE_MS = 1_900; // the service does not count those within 2 s of a window's first one
const ADVICE = "Raise `seconds`, or call again later.";

/** One try of a call. One that `waits` for an event may take minutes, so no other call waits for its answer. */
export interface Permit {
  readonly sentAt: number;
  readonly waits: boolean;
}

interface Turn {
  wake: () => void;
}

export class Gate {
  limits: Limits | undefined;
  #windows = new Map<string, Window>();
  #holdUntil = -Infinity;
  #reason: PetstoreError | undefined;
  #refusals: number[] = [];
  #unanswered: number[] = [];
  #unsettled: number[] = []; // calls without an answer that the windows may not know of
  #passedSentAt = -Infinity;
  readonly #underWay = new Set<Permit>();
  readonly #queue: Turn[] = [];
  readonly #onWait: ((seconds: number) => void) | undefined;
  #toldUntil = -Infinity;

  constructor(onWait?: (seconds: number) => void) {
    this.#onWait = onWait;
  }

  /** Waits for the turn of a call; throws when that comes after `by`. */
  async enter(by: number, waits: boolean, signal: AbortSignal | undefined): Promise<Permit> {
    signal?.throwIfAborted();
    const turn: Turn = { wake: () => undefined };
    this.#queue.push(turn);
    try {
      for (;;) {
        const now = clock.now();
        const opensAt = this.#opensAt(turn, now);
        if (opensAt <= now) return this.#take({ sentAt: now, waits });
        if (this.#heldUntil(now) > by || now >= by) throw this.#noSlotError(now);
        this.#tell(opensAt, now);
        const waking = new AbortController();
        turn.wake = () => waking.abort();
        await pause(Math.min(opensAt, by), signal, waking);
      }
    } finally {
      this.#queue.splice(this.#queue.indexOf(turn), 1);
      this.#queue[0]?.wake();
    }
  }

  /** When each window has more than half its limit left, in proportion to the time until its end. */
  ampleAt(): number {
    const ample = ({ endsAt, remaining, limit, lengthMs }: Window): number =>
      endsAt - ((2 * Math.max(remaining - 1, 0)) / limit) * lengthMs;
    return Math.max(-Infinity, ...[...this.#windows.values()].map(ample));
  }

  /** The call got an answer. Whether it has the limits of the key. */
  answered(permit: Permit, headers: Headers): boolean {
    const now = clock.now();
    this.#underWay.delete(permit);
    const seen = readWindows(headers, now);
    if (seen === undefined) {
      this.#unsettled.push(now);
    } else {
      this.limits = seen.limits;
      this.#unsettled = this.#unsettled.filter((lostAt) => lostAt > permit.sentAt);
      const learned = seen.windows.map((window) => this.#learn(window, permit));
      this.#windows = new Map(learned.map((window) => [window.name, window]));
      if (learned.some(({ remaining }) => remaining <= 0)) this.#wakeAll();
    }
    this.#queue[0]?.wake();
    return seen !== undefined;
  }

  /** A limit did not refuse the call. */
  passed(permit: Permit): void {
    this.#passedSentAt = Math.max(this.#passedSentAt, permit.sentAt);
  }

  /** A limit refused a call. */
  refused(): void {
    const now = clock.now();
    if (now - this.#passedSentAt > GRACE_MS) this.#refusals.push(now);
  }

  /** Send nothing for so long, because of this answer. */
  hold(ms: number, reason: PetstoreError): void {
    const until = clock.now() + ms;
    if (until > this.#holdUntil) [this.#holdUntil, this.#reason] = [until, reason];
    this.#wakeAll();
  }

  /** Nothing was sent. */
  withdrawn(permit: Permit): void {
    this.#underWay.delete(permit);
    this.#queue[0]?.wake();
  }

  /** No answer came: the call may have been counted, or refused. */
  lost(permit: Permit): void {
    this.#unanswered.push(clock.now());
    this.#unsettled.push(clock.now());
    this.withdrawn(permit);
  }

  /** Once for each pause, however many calls wait for its end. */
  #tell(opensAt: number, now: number): void {
    if (opensAt === Infinity || opensAt - now < 1_000 || opensAt <= this.#toldUntil) return;
    this.#toldUntil = opensAt;
    this.#onWait?.((opensAt - now) / 1_000);
  }

  #take(permit: Permit): Permit {
    this.#underWay.add(permit);
    return permit;
  }

  #wakeAll(): void {
    for (const turn of this.#queue) turn.wake();
  }

  /** Infinity while an answer must come first. */
  #opensAt(turn: Turn, now: number): number {
    const held = this.#heldUntil(now);
    if (held > now) return held;
    if (this.#queue[0] !== turn) return Infinity;
    const soon = [...this.#underWay].filter(({ waits }) => !waits);
    const windows = [...this.#windows.values()];
    const ended = windows.filter(({ endsAt }) => endsAt <= now).map(({ endsAt }) => endsAt);
    if (ended.length > 0 || windows.length === 0) {
      const since = Math.max(-Infinity, ...ended); // one call finds out what the new window has
      return soon.some(({ sentAt }) => sentAt >= since) ? Infinity : now;
    }
    const uncertain = this.#underWay.size + this.#unsettled.length;
    const full = windows.filter(({ remaining }) => remaining <= uncertain);
    if (soon.length > 0) return full.length > 0 || soon.length >= WIDTH ? Infinity : now;
    const isDaring = this.#refusals.length < REFUSALS - 1;
    return isDaring ? now : Math.max(now, ...full.map(({ endsAt }) => endsAt));
  }

  #heldUntil(now: number): number {
    const spent = [...this.#windows.values()].filter(({ remaining }) => remaining <= 0);
    return Math.max(this.#holdUntil, this.#resumesAt(now), ...spent.map(({ endsAt }) => endsAt));
  }

  /** So few refusals are risked that twenty processes with one key are never banned. */
  #resumesAt(now: number): number {
    this.#refusals = this.#refusals.filter((at) => at + SPAN_MS > now);
    this.#unanswered = this.#unanswered.filter((at) => at + SPAN_MS > now);
    const spare = Math.max(1, RISKED - this.#refusals.length);
    const oldest = Math.max(this.#refusals.at(-REFUSALS) ?? -Infinity, this.#unanswered.at(-spare) ?? -Infinity);
    return oldest + SPAN_MS;
  }

  #noSlotError(now: number): PetstoreError {
    const seconds = Math.max(0, this.#heldUntil(now) - now) / 1_000;
    if (this.#reason !== undefined && this.#holdUntil > now) {
      const { code, message, status, requestId } = this.#reason;
      return new PetstoreError(code, message, { status, requestId, retryAfterSeconds: seconds });
    }
    const message = seconds
      ? `The next call is possible in ${Math.ceil(seconds)} s, later than this one may wait. ${ADVICE}`
      : `Other calls of this client took all the time of this call. ${ADVICE}`;
    return new PetstoreError("rate_limited", message, { status: 429, retryAfterSeconds: seconds });
  }

  /** What is known of a window now. Answers may come out of order. */
  #learn(seen: Window, permit: Permit): Window {
    const known = this.#windows.get(seen.name);
    if (known === undefined || known.limit !== seen.limit) return seen;
    const later = seen.endsAt - known.endsAt;
    if (Math.abs(later) < seen.lengthMs / 2) {
      const [endsAt, remaining] = [Math.min(seen.endsAt, known.endsAt), Math.min(seen.remaining, known.remaining)];
      return { ...seen, endsAt, remaining };
    }
    return later < 0 && permit.sentAt < known.endsAt ? known : seen;
  }
}
