-- oldest: 1
-- Text that is compared is compared by its bytes (COLLATE "C"): no upgrade of the system's locales can
-- disorder an index, and a word is equal to itself alone.

-- GENERATED ALWAYS: an identifier comes from the sequence, which never goes back, not even after a crash
-- or a deletion. Its end keeps identifiers exact in JavaScript.
CREATE TABLE pets (
    id          bigint GENERATED ALWAYS AS IDENTITY (MAXVALUE 9007199254740991) PRIMARY KEY,
    name        text NOT NULL,
    category_id bigint NOT NULL,
    status      text COLLATE "C" NOT NULL CHECK (status IN ('available', 'pending', 'sold'))
);
-- With the id, so that a page by status is one walk of neighbours.
CREATE INDEX pets_by_status ON pets (status, id);

CREATE TABLE pet_status_changes (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    pet_id      bigint NOT NULL REFERENCES pets (id) ON DELETE CASCADE,
    at_ms       bigint NOT NULL,
    actor       text NOT NULL,
    from_status text COLLATE "C" NOT NULL,
    to_status   text COLLATE "C" NOT NULL
);
CREATE INDEX pet_status_changes_by_pet ON pet_status_changes (pet_id, id);

CREATE TABLE accounts (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name          text COLLATE "C" NOT NULL UNIQUE,
    plan          text NOT NULL,
    per_minute    bigint NOT NULL CHECK (per_minute > 0),
    per_day       bigint NOT NULL CHECK (per_day > 0),
    created_at_ms bigint NOT NULL
);

CREATE TABLE api_keys (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id     bigint NOT NULL REFERENCES accounts (id),
    digest         bytea NOT NULL UNIQUE CHECK (length(digest) = 32),
    label          text NOT NULL,
    display        text NOT NULL,
    created_at_ms  bigint NOT NULL,
    expires_at_ms  bigint,
    revoked_at_ms  bigint,
    pardoned_at_ms bigint NOT NULL DEFAULT 0
);
CREATE INDEX api_keys_by_account ON api_keys (account_id, id);

-- No foreign keys from here on: each row would lock its account's row, the same one for all of a busy
-- account's requests, and no batch should fail for an account that somebody deleted by hand.
CREATE TABLE idempotency_keys (
    account_id    bigint NOT NULL,
    key           text COLLATE "C" NOT NULL,
    fingerprint   bytea NOT NULL,
    pet_id        bigint NOT NULL,
    created_at_ms bigint NOT NULL,
    PRIMARY KEY (account_id, key)
);
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at_ms);

-- Written in batches about once a second. Room is left in their pages, so that an update finds a place
-- beside the old row and touches no index.
CREATE TABLE account_windows (
    account_id       bigint PRIMARY KEY,
    minute_opened_ms bigint NOT NULL,
    minute_used      bigint NOT NULL,
    day              bigint NOT NULL,
    day_used         bigint NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE key_standings (
    key_id            bigint PRIMARY KEY,
    refused_reset_at  bigint NOT NULL,
    first_refused_ms  bigint NOT NULL,
    strikes           bigint NOT NULL,
    strikes_opened_ms bigint NOT NULL,
    level             bigint NOT NULL,
    banned_from_ms    bigint NOT NULL,
    banned_until_ms   bigint NOT NULL,
    pardoned_ms       bigint NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE key_activity (
    key_id          bigint PRIMARY KEY,
    last_used_at_ms bigint NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE usage_days (
    account_id bigint NOT NULL,
    day        bigint NOT NULL,
    requests   bigint NOT NULL,
    refused    bigint NOT NULL,
    deprecated bigint NOT NULL,
    PRIMARY KEY (account_id, day)
) WITH (fillfactor = 50);
