-- oldest: 2
-- Addresses of clients that get events from a place on: `after_transaction` and `after_id` in a data set. `types` are
-- separated by commas, `secrets` are JSON, sealed where a setting says so. `owner` is the deliverer that has it;
-- `revision` counts what makes void what that one notes, such as a move.
CREATE TABLE webhooks (
    id                bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id        bigint NOT NULL REFERENCES accounts (id),
    key_id            bigint NOT NULL REFERENCES api_keys (id),
    url               text NOT NULL,
    types             text NOT NULL,
    description       text NOT NULL,
    created_at_ms     bigint NOT NULL,
    disabled          text COLLATE "C" CHECK (disabled IN ('owner', 'operator', 'failing', 'gone')),
    failing_since_ms  bigint,
    secrets           text NOT NULL,
    data_set          text COLLATE "C" NOT NULL,
    after_transaction bigint NOT NULL,
    after_id          bigint NOT NULL,
    failures          bigint NOT NULL DEFAULT 0,
    paused_until_ms   bigint NOT NULL DEFAULT 0,
    owner             text COLLATE "C" NOT NULL DEFAULT '',
    revision          bigint NOT NULL DEFAULT 0
);
CREATE INDEX webhooks_by_account ON webhooks (account_id, id);
CREATE INDEX webhooks_by_key ON webhooks (key_id);
CREATE INDEX webhooks_failing ON webhooks (failing_since_ms, id)
    WHERE failing_since_ms IS NOT NULL AND disabled IS NULL;

-- What is sent again: an entry, in the data set that its event has its id of.
CREATE TABLE webhook_repetitions (
    webhook_id bigint NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    data_set   text COLLATE "C" NOT NULL,
    entry_id   bigint NOT NULL,
    tries      bigint NOT NULL,
    at_ms      bigint NOT NULL,
    PRIMARY KEY (webhook_id, data_set, entry_id)
);

-- The tries that failed, and the last ones that did not.
CREATE TABLE webhook_tries (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    webhook_id  bigint NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    event_id    text COLLATE "C" NOT NULL,
    type        text COLLATE "C" NOT NULL,
    at_ms       bigint NOT NULL,
    duration_ms bigint NOT NULL,
    status      bigint,
    fault       text,
    answer      text NOT NULL,
    next_at_ms  bigint
);
CREATE INDEX webhook_tries_by_webhook ON webhook_tries (webhook_id, id);
CREATE INDEX webhook_successes ON webhook_tries (webhook_id, id) WHERE fault IS NULL;
CREATE INDEX webhook_tests ON webhook_tries (event_id) WHERE type = 'webhook.test';
CREATE INDEX webhook_failures_by_time ON webhook_tries (at_ms) WHERE fault IS NOT NULL;

-- The processes that deliver; each renews its deadline, and the webhooks of one that does not are free.
CREATE TABLE deliverers (
    owner       text COLLATE "C" PRIMARY KEY,
    deadline_ms bigint NOT NULL
);

-- Every role that may use the animals may use the new tables: the services need not own the database.
DO $$
DECLARE
    allowed record;
BEGIN
    FOR allowed IN
        SELECT relation, privilege_type AS what,
            CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END AS who
        FROM unnest(ARRAY['webhooks', 'webhook_repetitions', 'webhook_tries', 'deliverers']) AS relation, pg_class,
            aclexplode(coalesce(relacl, acldefault('r', relowner)))
        WHERE pg_class.oid = 'pets'::regclass AND privilege_type IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE')
    LOOP
        EXECUTE format('GRANT %s ON %I TO %s', allowed.what, allowed.relation, allowed.who);
    END LOOP;
END
$$;
