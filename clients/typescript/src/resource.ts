import type { Connection } from "./connection.js";

/** The operations on one kind of thing. */
export abstract class Resource {
  constructor(protected readonly connection: Connection) {}
}
