-- oldest: 1
-- The one row tells readers whether what they keep is still true. Triggers move it, so that no writer,
-- not even one with a SQL shell, can change an animal or a key unnoticed.
CREATE TABLE versions (
    one       INTEGER PRIMARY KEY CHECK (one = 1),
    catalogue INTEGER NOT NULL,
    keyring   INTEGER NOT NULL
) STRICT;
INSERT INTO versions VALUES (1, 1, 1);

-- AUTOINCREMENT: an identifier is never used again, not even after a crash or a deletion.
CREATE TABLE pets (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    name        TEXT NOT NULL,
    category_id INTEGER NOT NULL,
    status      TEXT NOT NULL CHECK (status IN ('available', 'pending', 'sold'))
) STRICT;
-- An index entry ends with the row's id, so a page by status is one walk of neighbours.
CREATE INDEX pets_by_status ON pets (status);

CREATE TABLE pet_status_changes (
    id          INTEGER PRIMARY KEY,
    pet_id      INTEGER NOT NULL REFERENCES pets (id) ON DELETE CASCADE,
    at_ms       INTEGER NOT NULL,
    actor       TEXT NOT NULL,
    from_status TEXT NOT NULL,
    to_status   TEXT NOT NULL
) STRICT;
CREATE INDEX pet_status_changes_by_pet ON pet_status_changes (pet_id);

CREATE TABLE accounts (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    name          TEXT NOT NULL UNIQUE,
    plan          TEXT NOT NULL,
    per_minute    INTEGER NOT NULL CHECK (per_minute > 0),
    per_day       INTEGER NOT NULL CHECK (per_day > 0),
    created_at_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE api_keys (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id     INTEGER NOT NULL REFERENCES accounts (id),
    digest         BLOB NOT NULL UNIQUE CHECK (length(digest) = 32),
    label          TEXT NOT NULL,
    display        TEXT NOT NULL,
    created_at_ms  INTEGER NOT NULL,
    expires_at_ms  INTEGER,
    revoked_at_ms  INTEGER,
    pardoned_at_ms INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX api_keys_by_account ON api_keys (account_id);

CREATE TABLE idempotency_keys (
    account_id    INTEGER NOT NULL REFERENCES accounts (id),
    key           TEXT NOT NULL,
    fingerprint   BLOB NOT NULL,
    pet_id        INTEGER NOT NULL,
    created_at_ms INTEGER NOT NULL,
    PRIMARY KEY (account_id, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at_ms);

-- Written in batches about once a second; apart from accounts and api_keys, so that no version moves, and
-- without foreign keys, so that no batch fails for an account that somebody deleted by hand.
CREATE TABLE account_windows (
    account_id       INTEGER PRIMARY KEY,
    minute_opened_ms INTEGER NOT NULL,
    minute_used      INTEGER NOT NULL,
    day              INTEGER NOT NULL,
    day_used         INTEGER NOT NULL
) STRICT;

CREATE TABLE key_standings (
    key_id            INTEGER PRIMARY KEY,
    refused_reset_at  INTEGER NOT NULL,
    first_refused_ms  INTEGER NOT NULL,
    strikes           INTEGER NOT NULL,
    strikes_opened_ms INTEGER NOT NULL,
    level             INTEGER NOT NULL,
    banned_from_ms    INTEGER NOT NULL,
    banned_until_ms   INTEGER NOT NULL,
    pardoned_ms       INTEGER NOT NULL
) STRICT;

CREATE TABLE key_activity (
    key_id          INTEGER PRIMARY KEY,
    last_used_at_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE usage_days (
    account_id INTEGER NOT NULL,
    day        INTEGER NOT NULL,
    requests   INTEGER NOT NULL,
    refused    INTEGER NOT NULL,
    deprecated INTEGER NOT NULL,
    PRIMARY KEY (account_id, day)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER pets_added   AFTER INSERT ON pets BEGIN UPDATE versions SET catalogue = catalogue + 1; END;
CREATE TRIGGER pets_changed AFTER UPDATE ON pets BEGIN UPDATE versions SET catalogue = catalogue + 1; END;
CREATE TRIGGER pets_removed AFTER DELETE ON pets BEGIN UPDATE versions SET catalogue = catalogue + 1; END;

CREATE TRIGGER accounts_added   AFTER INSERT ON accounts BEGIN UPDATE versions SET keyring = keyring + 1; END;
CREATE TRIGGER accounts_changed AFTER UPDATE ON accounts BEGIN UPDATE versions SET keyring = keyring + 1; END;
CREATE TRIGGER accounts_removed AFTER DELETE ON accounts BEGIN UPDATE versions SET keyring = keyring + 1; END;

CREATE TRIGGER api_keys_added   AFTER INSERT ON api_keys BEGIN UPDATE versions SET keyring = keyring + 1; END;
CREATE TRIGGER api_keys_changed AFTER UPDATE ON api_keys BEGIN UPDATE versions SET keyring = keyring + 1; END;
CREATE TRIGGER api_keys_removed AFTER DELETE ON api_keys BEGIN UPDATE versions SET keyring = keyring + 1; END;
