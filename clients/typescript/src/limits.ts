// The limits in the headers of an answer: `RateLimit` and `RateLimit-Policy`.

/** What an answer said of a window: `remaining` of `limit` calls until `resetAt`. */
export interface WindowLimit {
  readonly limit: number;
  readonly remaining: number;
  readonly resetAt: Date;
}

export interface Limits {
  readonly minute?: WindowLimit;
  readonly day?: WindowLimit;
}

/** As the gate keeps it; `endsAt` is a time of the client's clock. */
export interface Window {
  readonly name: string;
  readonly limit: number;
  readonly remaining: number;
  readonly endsAt: number;
  readonly lengthMs: number;
}

interface Seen {
  readonly limits: Limits;
  readonly windows: readonly Window[];
}

/** Undefined where an answer, such as a proxy's, has none. */
export function readWindows(headers: Headers, now: number): Seen | undefined {
  const policies = items(headers.get("RateLimit-Policy"));
  const seen = [...items(headers.get("RateLimit"))].flatMap(([name, { r, t }]) => {
    const { q, w } = policies.get(name) ?? {};
    if (r === undefined || t === undefined || !q || !w) return [];
    return [{ name, limit: q, remaining: r, seconds: Math.min(t, w), lengthMs: w * 1_000 }];
  });
  if (seen.length === 0) return undefined;
  const date = serviceTime(headers);
  const shown = seen.map(({ name, limit, remaining, seconds }) => {
    return [name, { limit, remaining, resetAt: new Date(date + seconds * 1_000) }] as const;
  });
  const windows = seen.map(({ seconds, ...window }) => ({ ...window, endsAt: now + seconds * 1_000 }));
  return { limits: Object.fromEntries(shown), windows };
}

/** The clock of who answered, where it says so; Unix time in milliseconds. */
export function serviceTime(headers: Headers): number {
  return Date.parse(headers.get("Date") ?? "") || Date.now();
}

/** `"minute";r=59;t=57, "day";…` as numbers by name. */
function items(text: string | null): Map<string, Partial<Record<string, number>>> {
  const found = (text ?? "").matchAll(/"(\w{1,64})"((?:\s*;\s*[a-z]+\s*=\s*\d{1,9})*)/g);
  const numbers = (parameters = ""): Partial<Record<string, number>> =>
    Object.fromEntries([...parameters.matchAll(/([a-z]+)\s*=\s*(\d+)/g)].map(([, key = "", value]) => [key, Number(value)]));
  return new Map([...found].map(([, name = "", parameters]) => [name, numbers(parameters)]));
}
