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

-- Networks from which a person has signed in.
CREATE TABLE known_addresses (
    person_id  INTEGER NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    network    TEXT NOT NULL,
    used_at_ms INTEGER NOT NULL,
    PRIMARY KEY (person_id, network)
) STRICT, WITHOUT ROWID;

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
