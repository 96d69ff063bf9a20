-- oldest: 1
-- Addresses of mail of an account or a person. `off` are the kinds of notifications that it does not take, separated
-- by commas; who knows the token may change them.
CREATE TABLE contacts (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id    INTEGER REFERENCES accounts (id),
    person_id     INTEGER REFERENCES people (id),
    address       TEXT NOT NULL,
    off           TEXT NOT NULL,
    token         TEXT NOT NULL UNIQUE,
    created_at_ms INTEGER NOT NULL,
    fault         TEXT,
    fault_at_ms   INTEGER,
    CHECK ((account_id IS NULL) <> (person_id IS NULL))
) STRICT;
CREATE UNIQUE INDEX contacts_by_account ON contacts (account_id, address) WHERE account_id IS NOT NULL;
CREATE UNIQUE INDEX contacts_by_person ON contacts (person_id, address) WHERE person_id IS NOT NULL;

-- Mails that are not sent yet: `said` are sentences in JSON, of the first of `count` facts. `begun` counts the tries
-- that may have succeeded, `tries` those that failed.
CREATE TABLE mails (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    contact_id    INTEGER NOT NULL REFERENCES contacts (id) ON DELETE CASCADE,
    kind          TEXT NOT NULL,
    said          TEXT NOT NULL,
    count         INTEGER NOT NULL,
    created_at_ms INTEGER NOT NULL,
    due_ms        INTEGER NOT NULL,
    tries         INTEGER NOT NULL DEFAULT 0,
    begun         INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX mails_by_time ON mails (due_ms);
CREATE INDEX mails_by_contact ON mails (contact_id, kind);

-- Up to where the journal's facts are in mails: a place in a data set.
CREATE TABLE notified (
    id                INTEGER PRIMARY KEY CHECK (id = 1),
    data_set          TEXT NOT NULL,
    after_transaction INTEGER NOT NULL,
    after_id          INTEGER NOT NULL
) STRICT;
