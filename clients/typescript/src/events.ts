// The feed of events: a page of it, and a follower.
import { clock } from "./clock.js";
import type { Connection } from "./connection.js";
import type { Event } from "./contract.js";
import { PetstoreError } from "./errors.js";
import { CallRun } from "./run.js";
import type { Call, CallOptions, Query } from "./operations.js";
import { next, PAGE_SIZE } from "./pages.js";
import { Resource } from "./resource.js";
import { retryAfterSeconds } from "./verdict.js";

const PAUSE_MIN_MS = 1_000; // between requests of a follower whose wait ended early, as at a restart of the service

export type EventType = NonNullable<Query<"listEvents">["type"]>[number];

export interface EventPage {
  readonly items: readonly Event[];
  /** The bookmark after them. */
  readonly after: string;
  /** Whether there are further events by now. */
  readonly isBehind: boolean;
}

export interface FollowOptions {
  /** The bookmark to go on from. Default "now"; null is the store's first event. */
  readonly after?: string | null | undefined;
  /** Such as "pet.updated" or "pet.*"; default all. */
  readonly types?: readonly EventType[] | undefined;
  /** Seconds for which each request waits for an event, 0 to 120; proxies on the way must allow them. Default 55. */
  readonly wait?: number | undefined;
  /** Ends it, with the signal's own reason. */
  readonly signal?: AbortSignal | undefined;
}

/** What has changed: animals, categories, and the account with its orders, keys and webhooks. */
export class Events extends Resource {
  /** At most `limit` events after a bookmark; without `after` from the first one, "now" is this moment. Needs level read. */
  async list(
    { types, ...query }: Query<"listEvents", "type"> & { readonly types?: readonly EventType[] | undefined } = {},
    options?: CallOptions,
  ): Promise<EventPage> {
    const call = { query: { ...query, type: types }, waitSeconds: query.wait, options };
    return (await ask(this.connection, call)).page;
  }

  /** Events as they come, for ever, at least once and in order, until `close` or the signal. Needs level read. */
  follow(options: FollowOptions = {}): Follow {
    return new Follow(this.connection, options);
  }
}

/** Events after a bookmark. After an error the next `next` goes on where it was. */
export class Follow implements AsyncIterableIterator<Event> {
  readonly #connection: Connection;
  readonly #options: FollowOptions;
  readonly #ending = new AbortController();
  #after: string | undefined;
  #pageEnd: string | undefined; // the bookmark after the events of the page
  #events: Event[] = [];
  #asksAt = -Infinity;

  constructor(connection: Connection, options: FollowOptions) {
    this.#connection = connection;
    this.#options = options;
    this.#after = options.after === null ? undefined : (options.after ?? "now");
    options.signal?.addEventListener("abort", () => this.close(), { signal: this.#ending.signal });
  }

  /**
   * The bookmark to store once the last event is dealt with; null while the beginning has no event. It moves on with
   * the last event of each page: from it no event is missed, and at most 99 come again, with the same `id`.
   */
  get after(): string | null {
    return this.#after ?? null;
  }

  async next(): Promise<IteratorResult<Event, undefined>> {
    for (;;) {
      this.#options.signal?.throwIfAborted();
      if (this.#ending.signal.aborted) return { done: true, value: undefined };
      const value = this.#events.shift();
      if (value !== undefined) {
        if (this.#events.length === 0) this.#after = this.#pageEnd;
        return { done: false, value };
      }
      try {
        await this.#fill();
      } catch (error) {
        if (!this.#ending.signal.aborted) throw error;
      }
    }
  }

  /** Ends the iteration, without an error. */
  close(): void {
    this.#ending.abort();
  }

  async return(): Promise<IteratorResult<Event, undefined>> {
    this.close();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async #fill(): Promise<void> {
    const { types, wait = 55 } = this.#options;
    const askedAt = clock.now();
    // The first request of "now" does not wait: what happens while a lost one is repeated would be passed over. The
    // first from the beginning has one event, so that there is a bookmark after it.
    const isNow = this.#after === "now";
    const waitSeconds = isNow ? 0 : wait;
    const query = { after: this.#after, type: types, limit: this.#after ? PAGE_SIZE : 1, wait: waitSeconds };
    const followsAt = Math.max(askedAt, this.#asksAt);
    const options = { signal: this.#ending.signal };
    const { page, pauseMs } = await ask(this.#connection, { query, waitSeconds, followsAt, options });
    this.#events = [...page.items];
    this.#pageEnd = page.after;
    if (page.items.length > 0) return;
    this.#after = page.after;
    if (pauseMs !== undefined) this.#asksAt = clock.now() + pauseMs;
    else if (!page.isBehind && !isNow) this.#asksAt = askedAt + PAUSE_MIN_MS;
  }
}

async function ask(
  connection: Connection,
  call: Omit<Call, "operation">,
): Promise<{ page: EventPage; pauseMs: number | undefined }> {
  const answer = await new CallRun(connection, { operation: "listEvents", ...call }).run();
  const after = next(answer, "after");
  if (after === undefined) throw new PetstoreError("unexpected_answer", "The events came without a bookmark.");
  const isBehind = answer.headers.get("Events-Behind") === "true";
  const seconds = retryAfterSeconds(answer.headers);
  const pauseMs = seconds === undefined ? undefined : seconds * 1_000;
  return { page: { items: answer.body as Event[], after, isBehind }, pauseMs };
}
