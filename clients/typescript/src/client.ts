// The client, and its animals, orders and categories.
import { Connection, type ConnectionOptions } from "./connection.js";
import type { Category, Order, Pet, Usage } from "./contract.js";
import { Events } from "./events.js";
import type { Limits } from "./limits.js";
import type { Body, CallOptions, ChangeOptions, CreateOptions, Query } from "./operations.js";
import { only, page, type Page, PAGE_SIZE, result, tagged, type Tagged, walk } from "./pages.js";
import { Resource } from "./resource.js";
import { Webhooks } from "./webhooks.js";

const IDS_AT_ONCE = 100;

interface Ids {
  /** Only those of these identifiers, at most 100. */
  readonly ids?: readonly number[] | undefined;
}

interface PageSize {
  /** How many items a request asks for, 1 to 100. Default 100. */
  readonly pageSize?: number | undefined;
}

export type PetPage = Query<"listPets", "id"> & Ids;
export type PetList = Query<"listPets", "id" | "limit" | "cursor"> & Ids & PageSize;
export type OrderPage = Query<"listOrders", "id"> & Ids;
export type OrderList = Query<"listOrders", "id" | "limit" | "cursor"> & Ids & PageSize;

/** A client of the pet store service. A program needs one for each key: its calls share the limits. */
export class Petstore {
  readonly pets: Pets;
  readonly orders: Orders;
  readonly categories: Categories;
  readonly events: Events;
  readonly webhooks: Webhooks;
  readonly #connection: Connection;

  constructor(options: ConnectionOptions) {
    this.#connection = new Connection(options);
    this.pets = new Pets(this.#connection);
    this.orders = new Orders(this.#connection);
    this.categories = new Categories(this.#connection);
    this.events = new Events(this.#connection);
    this.webhooks = new Webhooks(this.#connection);
  }

  /** What the last answer said is left; undefined before the first one. Costs nothing. */
  get limits(): Limits | undefined {
    return this.#connection.gate.limits;
  }

  /** The account's plan, what it has used, and its last 90 days. Needs level read. */
  usage(options?: CallOptions): Promise<Usage> {
    return result(this.#connection, { operation: "getUsage", options });
  }
}

/** Animals. Each method says which level of key it needs: read, write or manage. */
class Pets extends Resource {
  /** All animals of the filters, page by page. Needs level read. */
  list({ ids, pageSize = PAGE_SIZE, ...filters }: PetList = {}, options?: CallOptions): AsyncGenerator<Pet, void> {
    const query = { ...filters, id: ids, limit: pageSize };
    return walk(this.connection, { operation: "listPets", query, options }, ids);
  }

  /** One page, and the cursor of the next. Needs level read. */
  page({ ids, ...query }: PetPage = {}, options?: CallOptions): Promise<Page<Pet>> {
    return page(this.connection, { operation: "listPets", query: { ...query, id: ids }, options }, ids);
  }

  /** One animal. Errors: `not_found`. Needs level read. */
  get(petId: number, options?: CallOptions): Promise<Tagged<Pet>> {
    const call = { operation: "listPets", query: { id: [petId] }, options } as const;
    return only(this.connection, call, `There is no animal ${petId}.`);
  }

  /** The animals among these that exist, by ascending id; one request for each 100. Needs level read. */
  async getMany(ids: Iterable<number>, options?: CallOptions): Promise<Pet[]> {
    const wanted = [...new Set(ids)].sort((one, other) => one - other);
    const found: Pet[] = [];
    for (let at = 0; at < wanted.length; at += IDS_AT_ONCE) {
      const query = { ids: wanted.slice(at, at + IDS_AT_ONCE), limit: PAGE_SIZE };
      found.push(...(await this.page(query, options)).items);
    }
    return found;
  }

  /** Add an animal, once, whatever the network does. Needs level write. */
  create(pet: Body<"createPet">, options?: CreateOptions): Promise<Tagged<Pet>> {
    return tagged(this.connection, { operation: "createPet", body: pet, creates: true, options });
  }

  /** Change what is given. Errors: `not_found`, `conflict`, `precondition_failed`. Repeated only with `ifMatch`. Needs level manage. */
  update(petId: number, change: Body<"updatePet">, options?: ChangeOptions): Promise<Tagged<Pet>> {
    return tagged(this.connection, { operation: "updatePet", path: { petId }, body: change, options });
  }

  /** Remove an animal. Errors: `not_found`, `precondition_failed`, `conflict` while an order holds it. Needs level manage. */
  async delete(petId: number, options?: ChangeOptions): Promise<void> {
    await result(this.connection, { operation: "deletePet", path: { petId }, options });
  }
}

/** Orders: the account's own, and for a key of the level manage the changes of all. */
class Orders extends Resource {
  /** The account's orders, page by page. Needs level read; with `scope: "all"`, the orders of all accounts, level manage. */
  list({ ids, pageSize = PAGE_SIZE, ...filters }: OrderList = {}, options?: CallOptions): AsyncGenerator<Order, void> {
    const query = { ...filters, id: ids, limit: pageSize };
    return walk(this.connection, { operation: "listOrders", query, options }, ids);
  }

  /** One page, and the cursor of the next. Needs level read. */
  page({ ids, ...query }: OrderPage = {}, options?: CallOptions): Promise<Page<Order>> {
    return page(this.connection, { operation: "listOrders", query: { ...query, id: ids }, options }, ids);
  }

  /** One order of the account. Errors: `not_found`. Needs level read. */
  get(orderId: number, options?: CallOptions): Promise<Tagged<Order>> {
    const call = { operation: "listOrders", query: { id: [orderId] }, options } as const;
    return only(this.connection, call, `There is no order ${orderId}.`);
  }

  /** Order an available animal, once, whatever the network does. Errors: `conflict`. Needs level write. */
  place(order: Body<"placeOrder">, options?: CreateOptions): Promise<Tagged<Order>> {
    return tagged(this.connection, { operation: "placeOrder", body: order, creates: true, options });
  }

  /** Cancel an order of the account. Errors: `not_found`, `precondition_failed`, `conflict` when it is delivered. Needs level write. */
  async cancel(orderId: number, options?: ChangeOptions): Promise<void> {
    await result(this.connection, { operation: "cancelOrder", path: { orderId }, options });
  }

  /** Move any account's order. Errors: `not_found`, `conflict`, `precondition_failed`. Repeated only with `ifMatch`. Needs level manage. */
  update(orderId: number, change: Body<"updateOrder">, options?: ChangeOptions): Promise<Tagged<Order>> {
    return tagged(this.connection, { operation: "updateOrder", path: { orderId }, body: change, options });
  }
}

/** Names that staff gave to categories. */
class Categories extends Resource {
  /** All of them, by ascending id. Needs level read. */
  list(options?: CallOptions): Promise<Category[]> {
    return result(this.connection, { operation: "listCategories", options });
  }
}
