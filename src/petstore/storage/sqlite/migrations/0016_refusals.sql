-- oldest: 1
-- The last refused requests of each account.
CREATE TABLE refusals (
    id         INTEGER PRIMARY KEY,
    account_id INTEGER NOT NULL,
    at_ms      INTEGER NOT NULL,
    key_id     INTEGER NOT NULL,
    method     TEXT NOT NULL,
    path       TEXT,
    status     INTEGER NOT NULL,
    code       TEXT NOT NULL,
    of_window  TEXT,
    address    TEXT
) STRICT;
CREATE INDEX refusals_by_account ON refusals (account_id, id);
