-- oldest: 1
-- People sign in to the console. No version moves for them: nothing of a person is cached.
CREATE TABLE people (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    name           TEXT NOT NULL UNIQUE,
    role           TEXT NOT NULL CHECK (role IN ('viewer', 'staff', 'operator')),
    password       TEXT,
    created_at_ms  INTEGER NOT NULL,
    disabled_at_ms INTEGER
) STRICT;

-- Of links, sessions and keys the tables have digests, so that whoever reads a copy can't use them.
CREATE TABLE sign_in_links (
    digest        BLOB PRIMARY KEY CHECK (length(digest) = 32),
    person_id     INTEGER NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    created_at_ms INTEGER NOT NULL,
    expires_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sign_in_links_by_person ON sign_in_links (person_id);

CREATE TABLE sessions (
    digest        BLOB PRIMARY KEY CHECK (length(digest) = 32),
    person_id     INTEGER NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    address       TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL,
    used_at_ms    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_by_person ON sessions (person_id);
CREATE INDEX sessions_by_use ON sessions (used_at_ms);

-- Networks from which a person has signed in.
CREATE TABLE known_addresses (
    person_id  INTEGER NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    network    TEXT NOT NULL,
    used_at_ms INTEGER NOT NULL,
    PRIMARY KEY (person_id, network)
) STRICT, WITHOUT ROWID;

-- Browsers in which a person has signed in.
CREATE TABLE known_devices (
    digest     BLOB NOT NULL CHECK (length(digest) = 32),
    person_id  INTEGER NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    used_at_ms INTEGER NOT NULL,
    PRIMARY KEY (digest, person_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX known_devices_by_person ON known_devices (person_id);

CREATE TABLE sign_in_tries (
    subject   TEXT PRIMARY KEY,
    opened_ms INTEGER NOT NULL,
    tries     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Stock lists that people send to the console, in compressed parts, so that any process goes on with them.
CREATE TABLE stock_uploads (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    actor         TEXT NOT NULL,
    file          TEXT NOT NULL,
    form          TEXT NOT NULL CHECK (form IN ('csv', 'jsonl')),
    key_name      TEXT,
    state         TEXT NOT NULL CHECK (state IN ('arriving', 'waiting', 'checking', 'checked', 'storing',
                  'stored', 'refused', 'discarded')),
    bytes         INTEGER NOT NULL,
    counts        TEXT,
    faults        TEXT NOT NULL,
    message       TEXT NOT NULL,
    worked_by     TEXT NOT NULL,
    run           TEXT NOT NULL,
    done          INTEGER NOT NULL,
    created_at_ms INTEGER NOT NULL,
    beat_at_ms    INTEGER NOT NULL
) STRICT;
CREATE TABLE stock_upload_parts (
    upload_id INTEGER NOT NULL REFERENCES stock_uploads (id) ON DELETE CASCADE,
    kind      TEXT NOT NULL CHECK (kind IN ('list', 'rejects')),
    number    INTEGER NOT NULL,
    content   BLOB NOT NULL,
    PRIMARY KEY (upload_id, kind, number)
) STRICT;

-- For the sums of a day, and for the callers of the deprecated operation.
CREATE INDEX usage_days_by_day ON usage_days (day);
CREATE INDEX usage_days_deprecated ON usage_days (day) WHERE deprecated > 0;

-- A form of the console creates what belongs to no account, so a creation's account is no foreign key any more,
-- as in PostgreSQL. Every row is of the last 24 hours.
DROP VIEW idempotency_keys;
ALTER TABLE creations RENAME TO former_creations;
CREATE TABLE creations (
    account_id    INTEGER NOT NULL,
    key           TEXT NOT NULL,
    fingerprint   BLOB NOT NULL,
    resource_id   INTEGER NOT NULL,
    created_at_ms INTEGER NOT NULL,
    resource      TEXT NOT NULL DEFAULT 'pet',
    PRIMARY KEY (account_id, key)
) STRICT, WITHOUT ROWID;
INSERT INTO creations (account_id, key, fingerprint, resource_id, created_at_ms, resource)
SELECT account_id, key, fingerprint, resource_id, created_at_ms, resource FROM former_creations;
DROP TABLE former_creations;
CREATE INDEX creations_by_age ON creations (created_at_ms);

-- For programs of 1.0.0, as before.
CREATE VIEW idempotency_keys AS
SELECT account_id, key, fingerprint, resource_id AS pet_id, created_at_ms FROM creations WHERE resource = 'pet';

CREATE TRIGGER idempotency_keys_added INSTEAD OF INSERT ON idempotency_keys BEGIN
    INSERT OR REPLACE INTO creations (account_id, key, resource, fingerprint, resource_id, created_at_ms)
    VALUES (NEW.account_id, NEW.key, 'pet', NEW.fingerprint, NEW.pet_id, NEW.created_at_ms);
END;
CREATE TRIGGER idempotency_keys_removed INSTEAD OF DELETE ON idempotency_keys BEGIN
    DELETE FROM creations WHERE account_id = OLD.account_id AND key = OLD.key;
END;

-- For lists of accounts by name, whatever its case.
CREATE INDEX accounts_by_name ON accounts (name COLLATE NOCASE, name);
CREATE INDEX accounts_by_plan ON accounts (plan, name COLLATE NOCASE, name);
CREATE INDEX accounts_suspended ON accounts (name COLLATE NOCASE, name) WHERE suspended_at_ms IS NOT NULL AND closed_at_ms IS NULL;
CREATE INDEX accounts_closed ON accounts (name COLLATE NOCASE, name) WHERE closed_at_ms IS NOT NULL;
-- Of the keys that have ever been banned.
CREATE INDEX key_standings_by_ban ON key_standings (banned_until_ms) WHERE banned_until_ms > 0;
