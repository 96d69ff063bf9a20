-- oldest: 1
-- Addresses of clients that get events from a place on: `after_transaction` and `after_id` in a data set. `types` are
-- separated by commas, `secrets` are JSON, sealed where a setting says so. `owner` is the deliverer that has it;
-- `revision` counts what makes void what that one notes, such as a move.
CREATE TABLE webhooks (
    id                INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id        INTEGER NOT NULL REFERENCES accounts (id),
    key_id            INTEGER NOT NULL REFERENCES api_keys (id),
    url               TEXT NOT NULL,
    types             TEXT NOT NULL,
    description       TEXT NOT NULL,
    created_at_ms     INTEGER NOT NULL,
    disabled          TEXT CHECK (disabled IN ('owner', 'operator', 'failing', 'gone')),
    failing_since_ms  INTEGER,
    secrets           TEXT NOT NULL,
    data_set          TEXT NOT NULL,
    after_transaction INTEGER NOT NULL,
    after_id          INTEGER NOT NULL,
    failures          INTEGER NOT NULL DEFAULT 0,
    paused_until_ms   INTEGER NOT NULL DEFAULT 0,
    owner             TEXT NOT NULL DEFAULT '',
    revision          INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX webhooks_by_account ON webhooks (account_id, id);
CREATE INDEX webhooks_by_key ON webhooks (key_id);
CREATE INDEX webhooks_failing ON webhooks (failing_since_ms) WHERE failing_since_ms IS NOT NULL AND disabled IS NULL;

-- What is sent again: an entry, in the data set that its event has its id of.
CREATE TABLE webhook_repetitions (
    webhook_id INTEGER NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    data_set   TEXT NOT NULL,
    entry_id   INTEGER NOT NULL,
    tries      INTEGER NOT NULL,
    at_ms      INTEGER NOT NULL,
    PRIMARY KEY (webhook_id, data_set, entry_id)
) STRICT, WITHOUT ROWID;

-- The tries that failed, and the last ones that did not.
CREATE TABLE webhook_tries (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    webhook_id  INTEGER NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    event_id    TEXT NOT NULL,
    type        TEXT NOT NULL,
    at_ms       INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    status      INTEGER,
    fault       TEXT,
    answer      TEXT NOT NULL,
    next_at_ms  INTEGER
) STRICT;
CREATE INDEX webhook_tries_by_webhook ON webhook_tries (webhook_id, id);
CREATE INDEX webhook_successes ON webhook_tries (webhook_id, id) WHERE fault IS NULL;
CREATE INDEX webhook_tests ON webhook_tries (event_id) WHERE type = 'webhook.test';
CREATE INDEX webhook_failures_by_time ON webhook_tries (at_ms) WHERE fault IS NOT NULL;

-- The processes that deliver; each renews its deadline, and the webhooks of one that does not are free.
CREATE TABLE deliverers (
    owner       TEXT PRIMARY KEY,
    deadline_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
