// Webhooks of the account; verify.ts is for receivers.
import type { Delivery, EventRequest, Queued, Sent, Webhook, WebhookWithSecret } from "./contract.js";
import type { Body, CallOptions, ChangeOptions, CreateOptions } from "./operations.js";
import { PAGE_SIZE, result, tagged, type Tagged, walk } from "./pages.js";
import { Resource } from "./resource.js";

const TEST_SECONDS = 20; // for which the service holds the answer back

/** Addresses of the account to which the service sends events. All methods need level write. */
export class Webhooks extends Resource {
  /** All of them, by ascending id. */
  list(options?: CallOptions): Promise<Webhook[]> {
    return result(this.connection, { operation: "listWebhooks", options });
  }

  /** Send events to an address, by default all; `conflict` at the plan's number. Keep the `secret` for `verify`. */
  create(webhook: Body<"createWebhook">, options?: CreateOptions): Promise<Tagged<WebhookWithSecret>> {
    return tagged(this.connection, { operation: "createWebhook", body: webhook, creates: true, options });
  }

  /** One webhook; `not_found`. */
  get(webhookId: number, options?: CallOptions): Promise<Tagged<Webhook>> {
    return tagged(this.connection, { operation: "getWebhook", path: { webhookId }, options });
  }

  /** Change what is given; `not_found`, `precondition_failed`, `events_gone` for an `after` that is not kept. */
  update(webhookId: number, change: Body<"updateWebhook">, options?: ChangeOptions): Promise<Tagged<Webhook>> {
    return tagged(this.connection, { operation: "updateWebhook", path: { webhookId }, body: change, options });
  }

  /** Send it nothing more; `not_found`, `precondition_failed`. */
  async delete(webhookId: number, options?: ChangeOptions): Promise<void> {
    await result(this.connection, { operation: "deleteWebhook", path: { webhookId }, options });
  }

  /**
   * A new secret, beside which the former ones sign for 24 hours more; `conflict` for a sixth. After a lost answer
   * call it again: it is not repeated.
   */
  rotateSecret(webhookId: number, options?: CallOptions): Promise<WebhookWithSecret> {
    return result(this.connection, { operation: "rotateWebhookSecret", path: { webhookId }, options });
  }

  /** Send it a `webhook.test`, ten a minute; undefined when there is no answer after 20 seconds. */
  async test(webhookId: number, options?: CallOptions): Promise<Delivery | undefined> {
    const call = { operation: "testWebhook", path: { webhookId }, waitSeconds: TEST_SECONDS, options } as const;
    const sent = await result<Delivery | Queued>(this.connection, call);
    return "at" in sent ? sent : undefined;
  }

  /** Send the example of a type of event to each that gets such, once. In staging alone; elsewhere `not_found`. */
  rehearse(type: EventRequest["type"], options?: CallOptions): Promise<Sent[]> {
    return result(this.connection, { operation: "rehearseEvent", body: { type }, waitSeconds: TEST_SECONDS, options });
  }

  /** The newest 100 tries that succeeded, and all of 30 days that failed, newest first, page by page. */
  deliveries(webhookId: number, options?: CallOptions): AsyncGenerator<Delivery, void> {
    const query = { limit: PAGE_SIZE };
    return walk(this.connection, { operation: "listDeliveries", path: { webhookId }, query, options });
  }

  /** Send an event again soon; `not_found`, `conflict` for a webhook that is not enabled. */
  redeliver(webhookId: number, eventId: string, options?: CallOptions): Promise<Queued> {
    return result(this.connection, { operation: "redeliver", path: { webhookId, eventId }, options });
  }
}
