export { type OrderList, type OrderPage, type PetList, type PetPage, Petstore } from "./client.js";
export type { ConnectionOptions as PetstoreOptions } from "./connection.js";
export type {
  Category, Delivery, Event, NewOrder, NewPet, NewWebhook, Order, OrderChange, OrderStatus, Pet, PetChange, PetStatus,
  Queued, Sent, Usage, Webhook, WebhookChange, WebhookWithSecret,
} from "./contract.js";
export { type ClientCode, type ErrorCode, PetstoreError } from "./errors.js";
export type { EventPage, EventType, Follow, FollowOptions } from "./events.js";
export type { Limits, WindowLimit } from "./limits.js";
export type { CallOptions, ChangeOptions, CreateOptions } from "./operations.js";
export type { Page, Tagged } from "./pages.js";
export { type RequestHeaders, verify, type VerifyOptions } from "./verify.js";
