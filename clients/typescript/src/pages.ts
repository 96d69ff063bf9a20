// Lists by pages, and what an answer has beside its body.
import type { Connection } from "./connection.js";
import { PetstoreError } from "./errors.js";
import { CallRun } from "./run.js";
import type { Answer, Call } from "./operations.js";

/** One page of a list. */
export interface Page<T> {
  readonly items: readonly T[];
  /** For the next page, with the same filters; undefined on the last one. */
  readonly nextCursor: string | undefined;
}

/** With the tag of its state, for `ifMatch`. */
export type Tagged<T> = T & { readonly etag: string };

export const PAGE_SIZE = 100;

/** Carries a call out. The contract says that its answers are of this type. */
export async function result<T>(connection: Connection, call: Call): Promise<T> {
  return (await new CallRun(connection, call).run()).body as T;
}

export async function tagged<T extends object>(connection: Connection, call: Call): Promise<Tagged<T>> {
  const answer = await new CallRun(connection, call).run();
  return { ...(answer.body as T), etag: answer.headers.get("ETag") ?? "" };
}

/** The one that was asked for by its identifier: the tag of its list is its own. */
export async function only<T extends object>(connection: Connection, call: Call, absent: string): Promise<Tagged<T>> {
  const { body, headers } = await new CallRun(connection, call).run();
  const [item] = body as T[];
  if (item !== undefined) return { ...item, etag: headers.get("ETag") ?? "" };
  const requestId = headers.get("X-Request-Id") ?? undefined;
  throw new PetstoreError("not_found", absent, { status: 404, requestId });
}

/** With an empty filter `ids` it asks nothing: without the filter it would list all. */
export async function page<T>(connection: Connection, call: Call, ids?: readonly number[]): Promise<Page<T>> {
  if (ids?.length === 0) return { items: [], nextCursor: undefined };
  const answer = await new CallRun(connection, call).run();
  const nextCursor = next(answer, "cursor");
  if (nextCursor !== undefined && nextCursor === (call.query as { cursor?: string } | undefined)?.cursor) {
    throw new PetstoreError("unexpected_answer", "The next page is this one again. The walk would not end.");
  }
  return { items: answer.body as T[], nextCursor };
}

/** All items of all pages. */
export async function* walk<T>(connection: Connection, call: Call, ids?: readonly number[]): AsyncGenerator<T, void> {
  let cursor: string | undefined;
  do {
    const { items, nextCursor } = await page<T>(connection, { ...call, query: { ...call.query, cursor } }, ids);
    yield* items;
    cursor = nextCursor;
  } while (cursor !== undefined);
}

/**
 * A parameter of the link to what comes next, which must have it. Nothing else of the link is used, so that the key goes
 * nowhere else.
 */
export function next({ headers }: Answer, parameter: "after" | "cursor"): string | undefined {
  const link = /<([^<>]*)>\s*;\s*rel="?next"?/.exec(headers.get("Link") ?? "")?.[1];
  if (link === undefined) return undefined;
  const found = new URLSearchParams(link.replace(/^[^?]*/, "")).get(parameter);
  if (found) return found;
  throw new PetstoreError("unexpected_answer", `The link to what comes next has no ${parameter}.`);
}
