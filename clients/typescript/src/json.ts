// JSON with exact integers: one that a number can't hold becomes a bigint, and back.

const TOKENS = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/gs; // texts and numbers
const INTEGER = /^-?\d{16,}$/;

/** As JSON.parse, but for integers beyond ±(2^53 - 1), which become bigint instead of being rounded. */
export function parse(text: string): unknown {
  if (!/\d{16}/.test(text)) return JSON.parse(text);
  const mark = crypto.randomUUID(); // no text of an answer begins with it
  const marked = text.replace(TOKENS, (token) =>
    INTEGER.test(token) && !Number.isSafeInteger(Number(token)) ? `"${mark}${token}"` : token,
  );
  return JSON.parse(marked, (_, value: unknown) =>
    typeof value === "string" && value.startsWith(mark) ? BigInt(value.slice(mark.length)) : value,
  );
}

/** An object as JSON, without its undefined members. Throws TypeError for a number that is rounded already. */
export function stringify(document: object): string {
  const members = Object.entries(document).filter(([, value]) => value !== undefined);
  return `{${members.map(([name, value]) => `${JSON.stringify(name)}:${written(name, value)}`).join()}}`;
}

function written(name: string, value: unknown): string {
  return typeof value === "bigint" || typeof value === "number" ? exact(name, value) : JSON.stringify(value);
}

/** An integer in decimal digits. Throws TypeError for a number beyond ±(2^53 - 1). */
export function exact(name: string, value: number | bigint): string {
  if (typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value)) {
    throw new TypeError(`${name}: ${value} may be rounded. Beyond 2^53 give a bigint, such as 9007199254740993n.`);
  }
  return String(value);
}
