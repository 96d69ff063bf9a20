// Every operation of the contract: method and path, and the types of what it takes and gives.
import type { operations, paths } from "./contract.js";

type Methods = "GET" | "POST" | "PATCH" | "DELETE";

/** The deprecated operation is left out: `GET /pets?id=…` takes its place. */
export type Operation = Exclude<keyof operations, "getPet">;

export const ROUTES: Readonly<Record<Operation, readonly [Methods, keyof paths]>> = {
  listPets: ["GET", "/pets"],
  createPet: ["POST", "/pets"],
  updatePet: ["PATCH", "/pets/{petId}"],
  deletePet: ["DELETE", "/pets/{petId}"],
  listCategories: ["GET", "/categories"],
  listOrders: ["GET", "/store/orders"],
  placeOrder: ["POST", "/store/orders"],
  cancelOrder: ["DELETE", "/store/orders/{orderId}"],
  updateOrder: ["PATCH", "/store/orders/{orderId}"],
  getUsage: ["GET", "/usage"],
  listEvents: ["GET", "/events"],
  listWebhooks: ["GET", "/webhooks"],
  createWebhook: ["POST", "/webhooks"],
  getWebhook: ["GET", "/webhooks/{webhookId}"],
  updateWebhook: ["PATCH", "/webhooks/{webhookId}"],
  deleteWebhook: ["DELETE", "/webhooks/{webhookId}"],
  rotateWebhookSecret: ["POST", "/webhooks/{webhookId}/secret"],
  testWebhook: ["POST", "/webhooks/{webhookId}/test"],
  listDeliveries: ["GET", "/webhooks/{webhookId}/deliveries"],
  redeliver: ["POST", "/webhooks/{webhookId}/deliveries/{eventId}"],
  rehearseEvent: ["POST", "/rehearsal/events"],
};

/** An optional member may be given as undefined too. */
type Loose<T> = { readonly [K in keyof T]: object extends Pick<T, K> ? T[K] | undefined : T[K] };

/** The query of an operation without `Names`. */
export type Query<K extends Operation, Names extends string = never> = operations[K] extends {
  parameters: { query?: infer Q };
}
  ? Loose<Omit<NonNullable<Q>, Names>>
  : never;

/** The body that an operation takes. */
export type Body<K extends Operation> = operations[K] extends {
  requestBody?: { content: { "application/json": infer B } };
}
  ? Loose<B>
  : never;

/** How long a call goes on. */
export interface CallOptions {
  /** Ends the call, with the signal's own reason. A change may have taken place. */
  readonly signal?: AbortSignal | undefined;
  /** Seconds for the whole call: waits, tries, the answer. With 0 it does not wait, and is tried once. Default 300. */
  readonly seconds?: number | undefined;
  /** It fails after this number of faults; a refusal by the limits is none. Default 5. */
  readonly tries?: number | undefined;
  /** Seconds without a whole answer that end a try. Default 30. */
  readonly timeoutSeconds?: number | undefined;
}

export interface ChangeOptions extends CallOptions {
  /** The `etag` of an earlier answer: change only what is still in that state. */
  readonly ifMatch?: string | undefined;
}

export interface CreateOptions extends CallOptions {
  /** The client makes one; give your own to repeat the call in another process. */
  readonly idempotencyKey?: string | undefined;
}

/** One operation with its arguments. */
export interface Call {
  readonly operation: Operation;
  readonly path?: Readonly<Record<string, number | string>>;
  readonly query?: object;
  readonly body?: object;
  readonly creates?: boolean;
  readonly options?: (ChangeOptions & CreateOptions) | undefined;
  /** For which the service may hold the answer back. */
  readonly waitSeconds?: number | undefined;
  /** Of a follower: it is sent from this time of the clock on, without a deadline, and leaves calls to others. */
  readonly followsAt?: number;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: unknown;
}
