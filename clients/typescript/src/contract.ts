// Made by `python -m tools.typescript generate`: change the contract instead.

export interface paths {
    "/pets": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List animals
         * @description Returns a page of animals in ascending order of `id`, with `order=-id` the newest first. The body is a bare array;
         *     the position travels in `Link` (RFC 8288): `rel="next"` leads to the next page with every filter kept and is absent
         *     on the last page, `rel="first"` leads to the first page. Every animal that was there before the first page of a
         *     walk was read, and is not removed meanwhile, appears exactly once in the walk; a newer one at most once, and with
         *     `order=-id` never. One that a change brings into the filter or out of it during the walk appears at most once.
         *
         *     With `id` the list holds only the animals with those identifiers. An unknown identifier is simply absent, so
         *     `GET /pets?id=7` answers an empty array when there is no animal 7. Filters combine: an animal must satisfy all of them.
         *
         *     A query parameter that is not named here is 400 `invalid_parameter`, as for every operation.
         *
         *     Needs a key of level `read`, `write` or `manage`.
         */
        get: operations["listPets"];
        put?: never;
        /**
         * Add an animal
         * @description Adds an animal and answers it with the identifier that the service assigned. The body is at most 64 KiB, and the
         *     service waits at most 10 seconds for all of it. Nothing that a client sends is dropped in silence: an unknown member,
         *     `id` included, and a member that occurs twice are 400. `categoryId` is an integer literal; `1.0` and `1e0` are 400.
         *
         *     With `Idempotency-Key` a retry cannot add the animal twice.
         *
         *     Needs a key of level `write` or `manage`.
         */
        post: operations["createPet"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/pets/{petId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read one animal (deprecated)
         * @deprecated
         * @description Returns one animal. **This operation is deprecated and is to be removed on 5 December 2030.** The replacement is
         *     `GET /pets` with the status filter; its `id` parameter reads one animal, or a batch, by identifier:
         *     `GET /pets?id=7` in place of `GET /pets/7`.
         *
         *     Every response of the operation carries `Deprecation` (RFC 9745), `Sunset` (RFC 8594) and `Link` to the
         *     documentation and to the replacement. From the day of the removal on the answer to an authenticated request is 410
         *     `gone`. The operator may postpone that day but cannot bring it forward.
         *
         *     A `petId` that is not a positive int64 in plain decimal digits (`0`, `-1`, `+1`, `01`, `1.0`, `abc`) names no
         *     animal: 404.
         *
         *     Needs a key of level `read`, `write` or `manage`.
         */
        get: operations["getPet"];
        put?: never;
        post?: never;
        /**
         * Remove an animal
         * @description An addition: removes the animal for good; its identifier is never used again. A body is not read. While an open
         *     order holds the animal: 409, and the message names the order.
         *
         *     A repetition after a lost answer is 404: the animal is not there.
         *
         *     The removal of getPet leaves this operation in place.
         *
         *     Needs a key of level `manage`.
         */
        delete: operations["deletePet"];
        options?: never;
        head?: never;
        /**
         * Change an animal
         * @description An addition: changes the members that are sent, at least one, and answers the animal as it is then. The body is read
         *     as strictly as that of createPet, within 64 KiB and 10 seconds; as no member of an animal can be null,
         *     `application/json` and `application/merge-patch+json` (RFC 7396) mean the same.
         *
         *     From `available` an animal becomes `pending` or `sold`, from `pending` `available` or `sold`, from `sold`
         *     `available` (a return); another transition is 409, and the message names those that are allowed. While an open
         *     order holds the animal, the order decides its status: 409, and the message names the order. Name and category can
         *     be corrected. A change to the current values is accepted and recorded nowhere, so a request can be
         *     repeated after a lost answer.
         *
         *     The removal of getPet leaves this operation in place.
         *
         *     Needs a key of level `manage`.
         */
        patch: operations["updatePet"];
        trace?: never;
    };
    "/categories": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the categories that have a name
         * @description An addition: the names that the store's staff gave to categories, in ascending order of `id`, all in one answer.
         *     They are labels for people: an animal's `categoryId` may be any int64, whether it has a name or not.
         *     `GET /pets?categoryId=1` lists the animals of a category.
         *
         *     Needs a key of level `read`, `write` or `manage`.
         */
        get: operations["listCategories"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/store/orders": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the account's orders
         * @description An addition in shape: the published interface refers to this listing without one. Returns a page of the orders
         *     that the account of the key has placed, in ascending order of `id`, as a bare array; `Link` works as that of
         *     `GET /pets`. With `scope=all` a key of level `manage` gets the orders of all accounts, which it may move, and each
         *     order names its `account`.
         *
         *     With `id` the list holds only the orders with those identifiers: `GET /store/orders?id=7` reads one order. Filters
         *     combine. A query parameter that is not named here is 400.
         *
         *     Needs a key of level `read`, `write` or `manage`.
         */
        get: operations["listOrders"];
        put?: never;
        /**
         * Order an animal
         * @description An addition. Orders an animal for the account of the key. The animal must be `available`, else 409 `conflict`; it
         *     becomes `pending` in the same transaction, so an animal is never in two open orders. An order is of one animal:
         *     `quantity` is 1, and another value is 400. The body is read as strictly as that of `POST /pets`.
         *
         *     With `Idempotency-Key` a retry cannot place the order twice.
         *
         *     Needs a key of level `write` or `manage`.
         */
        post: operations["placeOrder"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/store/orders/{orderId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Cancel an order
         * @description An addition. Cancels an order of the account of the key; its animal is `available` again. Cancelling a cancelled order
         *     changes nothing. The order stays in the list, as `cancelled`.
         *
         *     Needs a key of level `write` or `manage`.
         */
        delete: operations["cancelOrder"];
        options?: never;
        head?: never;
        /**
         * Move an order
         * @description An addition: changes the state or the ship date of any account's order, and its
         *     animal in the same transaction. `placed` becomes `approved`, `approved` becomes `delivered` (the animal `sold`), and
         *     both become `cancelled` (the animal `available`). Another change is 409 `conflict`, and the message names the states
         *     that are allowed; the state that the order has already changes nothing. A delivery without a `shipDate` sets it to
         *     the moment of the change. A cancelled order can't get a ship date. `shipDate: null` takes it back; a delivered order
         *     keeps one.
         *
         *     At least one member is sent. What is not sent stays.
         *
         *     Needs a key of level `manage`.
         */
        patch: operations["updateOrder"];
        trace?: never;
    };
    "/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Follow changes
         * @description An addition: what has changed since a bookmark, in an order in which no event appears late, as a bare array. Every
         *     change that clients can see of an animal or a category name, and of the account, its orders and keys, is one event,
         *     which is never changed; /docs/events has every type. `Link` has the bookmark for the next request (`rel="next"`)
         *     always, with every parameter kept.
         *
         *     Without `after` the list begins with the store's first event; with `after=now` it is empty, and its bookmark is this
         *     moment. With `wait` an empty answer is held back until there is an event or the seconds are over. A waiting request
         *     costs one request, as any other; its headers are those of its end. An account has as many waiting requests as its
         *     plan says (Free 1, Pro 5, Business 20, Enterprise 100) at each process of the service: one more is answered at once,
         *     with `Retry-After`.
         *
         *     410 `events_gone` says that the store can't continue a bookmark, since it was restored from a copy or does not keep
         *     events for so long. Then take `after=now`, list the animals, and follow from that bookmark: an event may tell what
         *     the list shows already. An update of an animal that is not in the list is ignored.
         *
         *     Needs a key of level `read`, `write` or `manage`.
         */
        get: operations["listEvents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/webhooks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the account's webhooks
         * @description An addition: all webhooks of the account, by ascending `id`, as a bare array without pages. No answer but that of
         *     createWebhook and rotateWebhookSecret shows a secret. A webhook of another account is 404 to every operation.
         *
         *     Needs a key of level `write` or `manage`.
         */
        get: operations["listWebhooks"];
        put?: never;
        /**
         * Add a webhook
         * @description An addition: an address that gets the account's events from now on, each as one POST whose body is the event as
         *     listEvents shows it; /docs/events has the types. An account has as many webhooks as its plan says: Free 3, Pro 10,
         *     Business 50, Enterprise 100; one more is 409 `conflict`.
         *     * Each event arrives at least once; a repetition has the same `webhook-id`.
         *     * First tries begin in the order of listEvents. Up to 8 are under way at once, and repetitions go beside newer events.
         *     * A 2xx within 15 seconds is a success. Everything else is a failure, a redirect too, and is repeated after 5 s, 30 s,
         *       5 min, 30 min, 2, 5, 10, 14, 20 and 24 h, each ±20 %. `Retry-After` of 429 and 503 is obeyed, up to a day. After 20
         *       failures in a row there is one try at a time.
         *     * Five days without a success disable the webhook (`failing`), a 410 disables it at once (`gone`). Enabled again, it
         *       goes on where it stopped.
         *     Signatures are those of Standard Webhooks. `webhook-id` is the `id` of the event, `webhook-timestamp` the time of the
         *     try in Unix seconds, and `webhook-signature` has for each secret `v1,` and the base64 of HMAC-SHA256 over
         *     `ID.TIMESTAMP.BODY`, whose key is the bytes after `whsec_`, and spaces between. One that fits is enough. Refuse a
         *     timestamp that is more than 5 minutes off, answer at once, and do each `webhook-id` once.
         *
         *     The `url` is `https` to a public host, at port 443 or one from 1,024 up that is not a database's or the like. Refused are
         *     this machine, private networks and cloud metadata, also when the name leads there at the moment of a try. The operator
         *     may allow networks.
         *     With `Idempotency-Key` a retry cannot add the webhook twice: it gets the webhook and its secret as they are now.
         *
         *     Needs a key of level `write` or `manage`.
         */
        post: operations["createWebhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/webhooks/{webhookId}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Test a webhook
         * @description An addition: sends the event `webhook.test` to this webhook at once, out of the order, whatever its `types` are. The
         *     answer is the first try, as soon as there is one; 202 after 20 seconds, or when the service stops, without it. A body
         *     is not read. An account may do so 10 times a minute; then it is 429 `rate_limited`. A disabled webhook is 409.
         *
         *     Needs a key of level `write` or `manage`.
         */
        post: operations["testWebhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/webhooks/{webhookId}/deliveries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * See the outcomes of deliveries
         * @description An addition: a page of tries, the newest first, as a bare array; `Link` works as that of `GET /pets`. Kept are the
         *     failed tries of 30 days and the last 100 that succeeded.
         *
         *     Needs a key of level `write` or `manage`.
         */
        get: operations["listDeliveries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/webhooks/{webhookId}/deliveries/{eventId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send an event once more
         * @description An addition: sends an event that the account sees to this webhook soon, out of the order, whatever its `types` are. A
         *     body is not read. An event that the store does not have, or no more, is 404. A disabled webhook is 409, as is one to
         *     which 1,000 events wait to be sent again.
         *
         *     Needs a key of level `write` or `manage`.
         */
        post: operations["redeliver"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/webhooks/{webhookId}/secret": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Replace the secret of a webhook
         * @description An addition: makes a new secret. The former ones sign beside it for 24 hours more, so the receiver can be changed
         *     without a gap. At most 5 sign at once; one more is 409 `conflict`. A body is not read. After a lost answer ask again.
         *
         *     Needs a key of level `write` or `manage`.
         */
        post: operations["rotateWebhookSecret"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/webhooks/{webhookId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read one webhook
         * @description An addition: the webhook without its secret.
         *
         *     Needs a key of level `write` or `manage`.
         */
        get: operations["getWebhook"];
        put?: never;
        post?: never;
        /**
         * Remove a webhook
         * @description An addition: the webhook gets nothing more, but a try that is under way comes to its end. The outcomes of its
         *     deliveries are removed with it. A repetition after a lost answer is 404.
         *
         *     Needs a key of level `write` or `manage`.
         */
        delete: operations["deleteWebhook"];
        options?: never;
        head?: never;
        /**
         * Change a webhook
         * @description An addition: changes the members that are sent, at least one. `enabled: false` ends its deliveries, `enabled: true`
         *     begins them again where they stopped.
         *     `after` says where it goes on: a bookmark of listEvents, so that events come again, or `now`, which leaves out what
         *     has not been sent. 410 `events_gone` says that the store can't continue there, also when a webhook is enabled without
         *     `after` whose bookmark is gone: then send `after: now`, and list the animals anew.
         *
         *     Needs a key of level `write` or `manage`.
         */
        patch: operations["updateWebhook"];
        trace?: never;
    };
    "/usage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show the account's usage
         * @description An addition: the plan of the key's account, both windows of its limits, the key's own standing, and the last 90
         *     UTC days. It costs one request like any other, and the windows already have this one: they agree with the headers
         *     of the response.
         *
         *     `days` always has 90 entries, today first, days without requests too. Counts are up to a second behind, except
         *     today's `requests`, which is never less than `day.used`.
         *
         *     Needs a key of level `read`, `write` or `manage`.
         */
        get: operations["getUsage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/rehearsal/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send an event that has not happened
         * @description An addition, in Staging alone; elsewhere it is 404. Sends the example of a type at once, signed as ever, to each
         *     enabled webhook of the account whose `types` have it. It is sent once, and neither listEvents nor listDeliveries
         *     knows of it. The `id` of the event begins with `evt_000000000000_`, as no other does.
         *
         *     Needs a key of level `write` or `manage`.
         */
        post: operations["rehearseEvent"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /**
         * @description Availability status of an animal.
         * @enum {string}
         */
        PetStatus: "available" | "pending" | "sold";
        /** @description An animal to add. Without `status` it becomes `available`. The client never supplies `id`. */
        NewPet: {
            /** @description The animal's name, stored and returned exactly as sent: 1 to 255 characters (Unicode code points), at least one of them not white space, no control characters (U+0000 to U+001F, U+007F to U+009F). */
            name: string;
            /**
             * Format: int64
             * @description Identifier of the category the animal belongs to. Every int64 is accepted, and comes back digit for digit. On the wire it is an integer literal, `525`: no fraction and no exponent, so `525.0`, an integer to JSON Schema, is 400.
             */
            categoryId: number | bigint;
            status?: components["schemas"]["PetStatus"];
        };
        /** @description An animal. */
        Pet: {
            /**
             * Format: int64
             * @description Unique identifier of an animal, assigned by the service, below 2^53, never reused.
             */
            id: number;
            /** @description The name as it was sent. Those of older animals may have control characters (U+0080 to U+009F). */
            name: string;
            /**
             * Format: int64
             * @description Identifier of the category the animal belongs to. Every int64 is accepted, and comes back digit for digit. On the wire it is an integer literal, `525`: no fraction and no exponent, so `525.0`, an integer to JSON Schema, is 400.
             */
            categoryId: number | bigint;
            status: components["schemas"]["PetStatus"];
        };
        /** @description Animals in the order of their identifiers. */
        Pets: components["schemas"]["Pet"][];
        /** @description The members of an animal to change, at least one. The others stay as they are. */
        PetChange: {
            /** @description The animal's name, stored and returned exactly as sent: 1 to 255 characters (Unicode code points), at least one of them not white space, no control characters (U+0000 to U+001F, U+007F to U+009F). */
            name?: string;
            /**
             * Format: int64
             * @description Identifier of the category the animal belongs to. Every int64 is accepted, and comes back digit for digit. On the wire it is an integer literal, `525`: no fraction and no exponent, so `525.0`, an integer to JSON Schema, is 400.
             */
            categoryId?: number | bigint;
            status?: components["schemas"]["PetStatus"];
        };
        /** @description A category that has a name. */
        Category: {
            /**
             * Format: int64
             * @description Identifier of the category the animal belongs to. Every int64 is accepted, and comes back digit for digit. On the wire it is an integer literal, `525`: no fraction and no exponent, so `525.0`, an integer to JSON Schema, is 400.
             */
            id: number | bigint;
            /** @description Its name, for people. */
            name: string;
        };
        /** @description Categories in ascending order of their identifiers. */
        Categories: components["schemas"]["Category"][];
        /**
         * @description State of an order.
         * @enum {string}
         */
        OrderStatus: "placed" | "approved" | "delivered" | "cancelled";
        /** @description An order to place. The client never supplies `id`. */
        NewOrder: {
            /**
             * Format: int64
             * @description Unique identifier of an animal, assigned by the service, below 2^53, never reused.
             */
            petId: number;
            /**
             * Format: int32
             * @description An animal is one animal. 1 where it is not sent.
             * @constant
             */
            quantity?: 1;
            /** @description The customer's own text, such as an order number: by the rule of an animal's name. It never changes. */
            reference?: string;
        };
        /** @description Orders in ascending order of their identifiers. */
        Orders: components["schemas"]["Order"][];
        /** @description The members of an order that change. */
        OrderChange: {
            status?: components["schemas"]["OrderStatus"];
            /**
             * Format: date-time
             * @description When the animal was or is to be handed over (RFC 3339). Any offset may be sent, and up to nine digits of a fraction; the answer is in UTC with whole milliseconds. Capital `T` and `Z`.
             */
            shipDate?: string | null;
        };
        /** @description An order of one animal. An animal that was removed afterwards stays in its orders. */
        Order: {
            /**
             * Format: int64
             * @description Unique identifier of an order, assigned by the service, below 2^53, never reused.
             */
            id: number;
            /**
             * Format: int64
             * @description Unique identifier of an animal, assigned by the service, below 2^53, never reused.
             */
            petId: number;
            /**
             * Format: int32
             * @description Always 1.
             */
            quantity: number;
            /** @description The customer's own text, as it was sent. Absent where none was. */
            reference?: string;
            /**
             * Format: date-time
             * @description Absent until the order is delivered or staff give one.
             */
            shipDate?: string;
            status: components["schemas"]["OrderStatus"];
            /** @description Whether the animal was delivered. */
            complete: boolean;
            /** @description The name of the account that placed it. In the list with `scope=all`, and nowhere else. */
            account?: string;
        };
        /** @description Events, the oldest first. */
        Events: components["schemas"]["Event"][];
        /** @description A change, told once and the same wherever it appears. Members and types may be added: ignore those that you do not know. */
        Event: {
            /** @description Opaque, and never used again. */
            id: string;
            /** @description What has changed, and how. Further types may be added. /docs/events has them all. */
            type: string;
            /**
             * Format: date-time
             * @description When it was changed. Clocks of replicas differ; the order of events is that of the list.
             */
            timestamp: string;
            /** @description The `id` of the object, with all its members when it is new, else with those that changed; `previous` has what they were. `null` is a member that is not there. That of `store.restored` is empty. */
            data: {
                [key: string]: unknown;
            };
        };
        /** @description The types of the events that it gets, as `type` of listEvents takes them, or `*` for all. All unless it is sent. */
        WebhookTypes: components["schemas"]["WebhookType"][];
        /**
         * @description A type of event, such as `pet.updated`, a group, such as `pet.*`, or all.
         * @enum {string}
         */
        WebhookType: "*" | "pet.*" | "category.*" | "order.*" | "account.*" | "key.*" | "limit.*" | "webhook.*" | "store.*" | "pet.created" | "pet.updated" | "pet.deleted" | "category.updated" | "order.created" | "order.updated" | "account.updated" | "account.suspended" | "account.resumed" | "account.closed" | "key.issued" | "key.rotated" | "key.revoked" | "key.expiring" | "key.banned" | "key.unbanned" | "limit.approaching" | "limit.reached" | "webhook.disabled" | "webhook.test" | "store.restored";
        /** @description A webhook to add. */
        NewWebhook: {
            /** @description Where events go: an `https` URL of a public host, without user name and fragment. `http` is for addresses of this machine, where the service itself is served on one. */
            url: string;
            types?: components["schemas"]["WebhookTypes"];
            /** @description For people. No control characters. */
            description?: string;
        };
        /** @description Webhooks in ascending order of their identifiers. */
        Webhooks: components["schemas"]["Webhook"][];
        /** @description An address that gets events. */
        Webhook: {
            /**
             * Format: int64
             * @description Unique identifier of a webhook, assigned by the service, below 2^53, never reused.
             */
            id: number;
            /** @description Where events go: an `https` URL of a public host, without user name and fragment. `http` is for addresses of this machine, where the service itself is served on one. */
            url: string;
            /** @description The types of the events that it gets, each once. Further ones may be added. */
            types: string[];
            /** @description For people. No control characters. */
            description: string;
            /** @description Whether it gets events. */
            enabled: boolean;
            /** @description Why it gets nothing: `owner` or `operator` said so, `failing` after five days without a success, `gone` after a 410. */
            disabledReason: string | null;
            /**
             * Format: date-time
             * @description The first failed try since the last success.
             */
            failingSince: string | null;
            /**
             * Format: int64
             * @description The API key that made it.
             */
            keyId: number;
            /**
             * Format: date-time
             * @description When it was added.
             */
            createdAt: string;
        };
        /** @description A webhook with what signs its events. */
        WebhookWithSecret: {
            /**
             * Format: int64
             * @description Unique identifier of a webhook, assigned by the service, below 2^53, never reused.
             */
            id: number;
            /** @description Where events go: an `https` URL of a public host, without user name and fragment. `http` is for addresses of this machine, where the service itself is served on one. */
            url: string;
            /** @description The types of the events that it gets, each once. Further ones may be added. */
            types: string[];
            /** @description For people. No control characters. */
            description: string;
            /** @description Whether it gets events. */
            enabled: boolean;
            /** @description Why it gets nothing: `owner` or `operator` said so, `failing` after five days without a success, `gone` after a 410. */
            disabledReason: string | null;
            /**
             * Format: date-time
             * @description The first failed try since the last success.
             */
            failingSince: string | null;
            /**
             * Format: int64
             * @description The API key that made it.
             */
            keyId: number;
            /**
             * Format: date-time
             * @description When it was added.
             */
            createdAt: string;
            /** @description `whsec_` and the base64 of 32 random bytes, which are the key of the signature. It is shown when it is made, and by a repetition with the same `Idempotency-Key`, and never again. */
            secret: string;
        };
        /** @description Tries, the newest first. */
        Deliveries: components["schemas"]["Delivery"][];
        /** @description One try to send an event to a webhook. */
        Delivery: {
            /** @description Opaque, and never used again. */
            eventId: string;
            /** @description The type of the event. */
            type: string;
            /**
             * Format: date-time
             * @description When the try began.
             */
            at: string;
            /**
             * Format: int32
             * @description How long it took, in milliseconds.
             */
            durationMs: number;
            /**
             * Format: int32
             * @description The HTTP status of the answer; `null` when none came.
             */
            status: number | null;
            /** @description Why it failed, as a sentence. */
            fault: string | null;
            /** @description The beginning of the body that came back. */
            answer: string;
            /** @description Whether it was a success. */
            delivered: boolean;
            /**
             * Format: date-time
             * @description When it is repeated; `null` when it is not, and while the webhook is disabled: what waits is sent once that is enabled.
             */
            nextAt: string | null;
        };
        /** @description An event that is to be sent. */
        Queued: {
            /** @description Opaque, and never used again. */
            eventId: string;
        };
        /** @description The members of a webhook to change, at least one. The others stay as they are. */
        WebhookChange: {
            /** @description Where events go: an `https` URL of a public host, without user name and fragment. `http` is for addresses of this machine, where the service itself is served on one. */
            url?: string;
            types?: components["schemas"]["WebhookTypes"];
            /** @description For people. No control characters. */
            description?: string;
            /** @description Whether it gets events. */
            enabled?: boolean;
            /** @description Where it goes on, a bookmark from the `Link` of listEvents, or `now`. */
            after?: string;
        };
        /** @description The usage of an account, as seen with one of its keys. */
        Usage: {
            /** @description The account's name. */
            account: string;
            /** @description The plan's name. Further ones may be added. */
            plan: string;
            /**
             * Format: int32
             * @description Requests that the plan allows in a minute.
             */
            perMinute: number;
            /**
             * Format: int32
             * @description Requests that the plan allows on a UTC day.
             */
            perDay: number;
            minute: components["schemas"]["WindowUse"];
            day: components["schemas"]["WindowUse"];
            key: components["schemas"]["KeyStanding"];
            /** @description The last 90 UTC days, today first. */
            days: components["schemas"]["UsageDay"][];
        };
        /** @description A window of the limits. While the shared counters can't be reached, each process counts apart and shows its own count. */
        WindowUse: {
            /**
             * Format: int64
             * @description Requests of the account in the window, this one included.
             */
            used: number;
            /**
             * Format: date-time
             * @description When the window begins anew, in UTC.
             */
            resetAt: string;
        };
        /** @description The key that the request was made with. */
        KeyStanding: {
            /** @description The level of the key, `read`, `write` or `manage`. Further ones may be added. */
            access: string;
            /**
             * Format: date-time
             * @description When the key expires, in UTC; null for a key that does not.
             */
            expiresAt: string | null;
            /**
             * Format: date-time
             * @description The end of the key's ban. Always null in this answer, since a banned key gets 429 `key_banned` with `Retry-After` instead.
             */
            bannedUntil: string | null;
        };
        /** @description Counts of an account on a UTC day. */
        UsageDay: {
            /** Format: date */
            date: string;
            /**
             * Format: int64
             * @description Requests that were admitted, whatever their status.
             */
            requests: number;
            /**
             * Format: int64
             * @description Requests that were refused with 429.
             */
            refused: number;
            /**
             * Format: int64
             * @description Calls of getPet, admitted or refused. It is removed on 5 December 2030.
             */
            deprecated: number;
        };
        /** @description Which event to send. */
        EventRequest: {
            /**
             * @description A type of event.
             * @enum {string}
             */
            type: "pet.created" | "pet.updated" | "pet.deleted" | "category.updated" | "order.created" | "order.updated" | "account.updated" | "account.suspended" | "account.resumed" | "account.closed" | "key.issued" | "key.rotated" | "key.revoked" | "key.expiring" | "key.banned" | "key.unbanned" | "limit.approaching" | "limit.reached" | "webhook.disabled" | "store.restored";
        };
        /** @description The outcomes of an event, by webhook. */
        SentEvents: components["schemas"]["Sent"][];
        /** @description The outcome of an event at a webhook. */
        Sent: {
            /**
             * Format: int64
             * @description Unique identifier of a webhook, assigned by the service, below 2^53, never reused.
             */
            webhookId: number;
            delivery: components["schemas"]["Delivery"];
        };
        /** @description What went wrong: exactly these three members, in every later version of `/v1` too. `status` equals the HTTP status. */
        Error: {
            /**
             * @description Machine-readable error code. The examples are all codes of this version. None of them is ever removed, renamed or used for something else within `/v1`, but further ones may be added: that is why this is not an enumeration. Treat an unknown code by its status.
             * @enum {string}
             */
            code: "invalid_request" | "invalid_json" | "invalid_body" | "invalid_parameter" | "invalid_header" | "unauthorized" | "account_suspended" | "forbidden" | "not_found" | "method_not_allowed" | "request_timeout" | "conflict" | "idempotency_key_in_use" | "gone" | "events_gone" | "precondition_failed" | "payload_too_large" | "uri_too_long" | "unsupported_media_type" | "idempotency_key_reused" | "rate_limited" | "key_banned" | "headers_too_large" | "internal_error" | "unavailable" | "outcome_unknown";
            /** @description Human-readable description. */
            message: string;
            /**
             * Format: int32
             * @description The HTTP status code.
             */
            status: number;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type PetStatus = components['schemas']['PetStatus'];
export type NewPet = components['schemas']['NewPet'];
export type Pet = components['schemas']['Pet'];
export type Pets = components['schemas']['Pets'];
export type PetChange = components['schemas']['PetChange'];
export type Category = components['schemas']['Category'];
export type Categories = components['schemas']['Categories'];
export type OrderStatus = components['schemas']['OrderStatus'];
export type NewOrder = components['schemas']['NewOrder'];
export type Orders = components['schemas']['Orders'];
export type OrderChange = components['schemas']['OrderChange'];
export type Order = components['schemas']['Order'];
export type Events = components['schemas']['Events'];
export type Event = components['schemas']['Event'];
export type WebhookTypes = components['schemas']['WebhookTypes'];
export type WebhookType = components['schemas']['WebhookType'];
export type NewWebhook = components['schemas']['NewWebhook'];
export type Webhooks = components['schemas']['Webhooks'];
export type Webhook = components['schemas']['Webhook'];
export type WebhookWithSecret = components['schemas']['WebhookWithSecret'];
export type Deliveries = components['schemas']['Deliveries'];
export type Delivery = components['schemas']['Delivery'];
export type Queued = components['schemas']['Queued'];
export type WebhookChange = components['schemas']['WebhookChange'];
export type Usage = components['schemas']['Usage'];
export type WindowUse = components['schemas']['WindowUse'];
export type KeyStanding = components['schemas']['KeyStanding'];
export type UsageDay = components['schemas']['UsageDay'];
export type EventRequest = components['schemas']['EventRequest'];
export type SentEvents = components['schemas']['SentEvents'];
export type Sent = components['schemas']['Sent'];
export type Error = components['schemas']['Error'];
export type $defs = Record<string, never>;
export interface operations {
    listPets: {
        parameters: {
            query?: {
                /** @description Maximum number of animals returned, or of orders or tries where those are listed. Plain decimal digits, at most once; anything else (`0`, `101`, `05`, `+5`, an empty value) is 400. */
                limit?: number;
                /**
                 * @description An addition: the position in a walk. It is opaque, and its only source is the `next` reference in `Link`, to be
                 *     followed as it stands. It is bound to the filters and the order of the walk: a cursor that the service did
                 *     not make, or made for others, is 400 `invalid_parameter`, although it may satisfy the pattern, because no
                 *     pattern can express a checksum. `limit` may change within a walk. A cursor does not expire. The example is the
                 *     beginning of any walk.
                 */
                cursor?: string;
                /**
                 * @description An addition: returns only what comes after this identifier in the order of the list. A client that does not see
                 *     `Link` sends the last `id` of each page for the next one, until a page is shorter than `limit`: that is the last.
                 *     Not together with a `cursor`, except that of its example, which is the beginning: 400.
                 */
                after?: number;
                /** @description Returns only animals with that availability status. At most once; the values are case-sensitive. */
                status?: components["schemas"]["PetStatus"];
                /** @description An addition: returns only animals with one of these identifiers, one animal or a batch: `?id=7&id=9`, `?id[]=7&id[]=9` or `?id=7,9`, with at most 100 values. Unknown identifiers are simply absent from the answer, repeated ones count once in it. A value that is not a positive int64 in plain decimal digits is 400. */
                id?: number[];
                /** @description An addition: returns only animals of that category. At most once, an int64 in plain decimal digits (`5`, `-5`); anything else (`+5`, `05`, `5.0`) is 400. */
                categoryId?: number | bigint;
                /** @description An addition: `id` for ascending order, which is the default, or `-id` for the newest animals first. At most once. */
                order?: "id" | "-id";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of animals. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Pets"];
                };
            };
        };
    };
    createPet: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description The animal to add, as `application/json` in UTF-8 (`charset=utf-8` may be said). A `Content-Encoding` other than `identity` is 415. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewPet"];
            };
        };
        responses: {
            /** @description The animal that was added, durably stored. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Pet"];
                };
            };
        };
    };
    getPet: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Identifier of the animal, a positive int64 in plain decimal digits. Anything else names no animal and is 404. */
                petId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The animal. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Pet"];
                };
            };
        };
    };
    deletePet: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Identifier of the animal, a positive int64 in plain decimal digits. Anything else names no animal and is 404. */
                petId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The animal was removed, durably. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    updatePet: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Identifier of the animal, a positive int64 in plain decimal digits. Anything else names no animal and is 404. */
                petId: number;
            };
            cookie?: never;
        };
        /** @description The members to change, in UTF-8 (`charset=utf-8` may be said). A `Content-Encoding` other than `identity` is 415. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["PetChange"];
                "application/merge-patch+json": components["schemas"]["PetChange"];
            };
        };
        responses: {
            /** @description The animal as it is now, durably stored. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Pet"];
                };
            };
        };
    };
    listCategories: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The categories that have a name. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Categories"];
                };
            };
        };
    };
    listOrders: {
        parameters: {
            query?: {
                /** @description Maximum number of animals returned, or of orders or tries where those are listed. Plain decimal digits, at most once; anything else (`0`, `101`, `05`, `+5`, an empty value) is 400. */
                limit?: number;
                /** @description The position in a walk: opaque, from the `next` reference in `Link`, as that of listPets. It is bound to the filters and to the account or the scope. */
                cursor?: string;
                /**
                 * @description An addition: returns only what comes after this identifier in the order of the list. A client that does not see
                 *     `Link` sends the last `id` of each page for the next one, until a page is shorter than `limit`: that is the last.
                 *     Not together with a `cursor`, except that of its example, which is the beginning: 400.
                 */
                after?: number;
                /** @description Returns only orders in that state. At most once; the values are case-sensitive. */
                status?: components["schemas"]["OrderStatus"];
                /** @description Returns only orders with one of these identifiers: `?id=7&id=9`, `?id[]=7&id[]=9` or `?id=7,9`, with at most 100 values. Unknown identifiers, and without `scope=all` those of other accounts' orders, are simply absent from the answer. */
                id?: number[];
                /** @description Whose orders: the account's own, as without it, or those of all accounts, for a key of level `manage`; with another one `all` is 403 `forbidden`. At most once. */
                scope?: "own" | "all";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of orders. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Orders"];
                };
            };
        };
    };
    placeOrder: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description The order, as `application/json` in UTF-8. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewOrder"];
            };
        };
        responses: {
            /** @description The order that was placed, durably stored. A replay shows it as it was placed, even if it has changed since. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Order"];
                };
            };
        };
    };
    cancelOrder: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Identifier of the order, a positive int64 in plain decimal digits. Anything else names no order and is 404. */
                orderId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The order is cancelled. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    updateOrder: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Identifier of the order, a positive int64 in plain decimal digits. Anything else names no order and is 404. */
                orderId: number;
            };
            cookie?: never;
        };
        /** @description The members that change, in UTF-8. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["OrderChange"];
                "application/merge-patch+json": components["schemas"]["OrderChange"];
            };
        };
        responses: {
            /** @description The order as it is now. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Order"];
                };
            };
        };
    };
    listEvents: {
        parameters: {
            query?: {
                /** @description The bookmark from the `Link` of an earlier answer, opaque; or `now`. It stays valid over restarts and upgrades, and is of one store: after a restore it is 410. */
                after?: string;
                /** @description Only events of these types, such as `pet.updated`, or of a group, such as `pet.*`. May stand several times, or have several values with commas between. */
                type?: ("pet.*" | "category.*" | "order.*" | "account.*" | "key.*" | "limit.*" | "webhook.*" | "store.*" | "pet.created" | "pet.updated" | "pet.deleted" | "category.updated" | "order.created" | "order.updated" | "account.updated" | "account.suspended" | "account.resumed" | "account.closed" | "key.issued" | "key.rotated" | "key.revoked" | "key.expiring" | "key.banned" | "key.unbanned" | "limit.approaching" | "limit.reached" | "webhook.disabled" | "webhook.test" | "store.restored")[];
                /** @description Maximum number of events returned, as that of `GET /pets`. */
                limit?: number;
                /** @description Seconds to wait for an event when there is none. Clients and proxies have time limits of their own: they must be longer. */
                wait?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The next events, the oldest first; none when nothing has changed. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Events"];
                };
            };
        };
    };
    listWebhooks: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All of them. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhooks"];
                };
            };
        };
    };
    createWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description The webhook, as `application/json` in UTF-8. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewWebhook"];
            };
        };
        responses: {
            /** @description The webhook, durably stored, with its secret. Keep that; a webhook that is read has none. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookWithSecret"];
                };
            };
        };
    };
    testWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Identifier of the webhook, a positive int64 in plain decimal digits. Anything else names no webhook and is 404. */
                webhookId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The outcome of the first try; `delivered` says whether it was a success. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Delivery"];
                };
            };
            /** @description The event is to be sent; listDeliveries has the outcome. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Queued"];
                };
            };
        };
    };
    listDeliveries: {
        parameters: {
            query?: {
                /** @description Maximum number of animals returned, or of orders or tries where those are listed. Plain decimal digits, at most once; anything else (`0`, `101`, `05`, `+5`, an empty value) is 400. */
                limit?: number;
                /**
                 * @description An addition: the position in a walk. It is opaque, and its only source is the `next` reference in `Link`, to be
                 *     followed as it stands. It is bound to the filters and the order of the walk: a cursor that the service did
                 *     not make, or made for others, is 400 `invalid_parameter`, although it may satisfy the pattern, because no
                 *     pattern can express a checksum. `limit` may change within a walk. A cursor does not expire. The example is the
                 *     beginning of any walk.
                 */
                cursor?: string;
            };
            header?: never;
            path: {
                /** @description Identifier of the webhook, a positive int64 in plain decimal digits. Anything else names no webhook and is 404. */
                webhookId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of tries. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Deliveries"];
                };
            };
        };
    };
    redeliver: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Identifier of the webhook, a positive int64 in plain decimal digits. Anything else names no webhook and is 404. */
                webhookId: number;
                /** @description The `id` of an event. */
                eventId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The event is to be sent; listDeliveries has the outcome. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Queued"];
                };
            };
        };
    };
    rotateWebhookSecret: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Identifier of the webhook, a positive int64 in plain decimal digits. Anything else names no webhook and is 404. */
                webhookId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The webhook with its new secret, which is not shown again. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookWithSecret"];
                };
            };
        };
    };
    getWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Identifier of the webhook, a positive int64 in plain decimal digits. Anything else names no webhook and is 404. */
                webhookId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The webhook. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
        };
    };
    deleteWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Identifier of the webhook, a positive int64 in plain decimal digits. Anything else names no webhook and is 404. */
                webhookId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The webhook was removed, durably. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    updateWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Identifier of the webhook, a positive int64 in plain decimal digits. Anything else names no webhook and is 404. */
                webhookId: number;
            };
            cookie?: never;
        };
        /** @description The members that change, in UTF-8. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["WebhookChange"];
                "application/merge-patch+json": components["schemas"]["WebhookChange"];
            };
        };
        responses: {
            /** @description The webhook as it is now, durably stored. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
        };
    };
    getUsage: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The account's usage. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Usage"];
                };
            };
        };
    };
    rehearseEvent: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description The type, as `application/json` in UTF-8. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["EventRequest"];
            };
        };
        responses: {
            /** @description The outcome of each try, by webhook; none where no webhook gets such events. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SentEvents"];
                };
            };
        };
    };
}
