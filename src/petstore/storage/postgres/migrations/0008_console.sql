-- oldest: 2
-- People sign in to the console. No version moves for them: nothing of a person is cached.
CREATE TABLE people (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name           text COLLATE "C" NOT NULL UNIQUE,
    role           text COLLATE "C" NOT NULL CHECK (role IN ('viewer', 'staff', 'operator')),
    password       text,
    created_at_ms  bigint NOT NULL,
    disabled_at_ms bigint
);

-- Of links, sessions and keys the tables have digests, so that whoever reads a copy can't use them.
CREATE TABLE sign_in_links (
    digest        bytea PRIMARY KEY CHECK (length(digest) = 32),
    person_id     bigint NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    created_at_ms bigint NOT NULL,
    expires_at_ms bigint NOT NULL
);
CREATE INDEX sign_in_links_by_person ON sign_in_links (person_id);

CREATE TABLE sessions (
    digest        bytea PRIMARY KEY CHECK (length(digest) = 32),
    person_id     bigint NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    address       text NOT NULL,
    created_at_ms bigint NOT NULL,
    used_at_ms    bigint NOT NULL
);
CREATE INDEX sessions_by_person ON sessions (person_id);
CREATE INDEX sessions_by_use ON sessions (used_at_ms);

-- Networks from which a person has signed in.
CREATE TABLE known_addresses (
    person_id  bigint NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    network    text COLLATE "C" NOT NULL,
    used_at_ms bigint NOT NULL,
    PRIMARY KEY (person_id, network)
);

-- Browsers in which a person has signed in.
CREATE TABLE known_devices (
    digest     bytea NOT NULL CHECK (length(digest) = 32),
    person_id  bigint NOT NULL REFERENCES people (id) ON DELETE CASCADE,
    used_at_ms bigint NOT NULL,
    PRIMARY KEY (digest, person_id)
);
CREATE INDEX known_devices_by_person ON known_devices (person_id);

CREATE TABLE sign_in_tries (
    subject   text COLLATE "C" PRIMARY KEY,
    opened_ms bigint NOT NULL,
    tries     bigint NOT NULL
);

-- Stock lists that people send to the console, in compressed parts, so that any process goes on with them.
CREATE TABLE stock_uploads (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    actor         text COLLATE "C" NOT NULL,
    file          text NOT NULL,
    form          text COLLATE "C" NOT NULL CHECK (form IN ('csv', 'jsonl')),
    key_name      text,
    state         text COLLATE "C" NOT NULL CHECK (state IN ('arriving', 'waiting', 'checking', 'checked', 'storing',
                  'stored', 'refused', 'discarded')),
    bytes         bigint NOT NULL,
    counts        text,
    faults        text NOT NULL,
    message       text NOT NULL,
    worked_by     text NOT NULL,
    run           text COLLATE "C" NOT NULL,
    done          bigint NOT NULL,
    created_at_ms bigint NOT NULL,
    beat_at_ms    bigint NOT NULL
);
CREATE TABLE stock_upload_parts (
    upload_id bigint NOT NULL REFERENCES stock_uploads (id) ON DELETE CASCADE,
    kind      text COLLATE "C" NOT NULL CHECK (kind IN ('list', 'rejects')),
    number    bigint NOT NULL,
    content   bytea NOT NULL,
    PRIMARY KEY (upload_id, kind, number)
);

-- For the sums of a day, and for the callers of the deprecated operation.
CREATE INDEX usage_days_by_day ON usage_days (day);
CREATE INDEX usage_days_deprecated ON usage_days (day) WHERE deprecated > 0;

-- For lists of accounts by name, whatever its case.
CREATE INDEX accounts_by_name ON accounts (lower(name), name);
CREATE INDEX accounts_by_plan ON accounts (plan, lower(name), name);
CREATE INDEX accounts_suspended ON accounts (lower(name), name) WHERE suspended_at_ms IS NOT NULL AND closed_at_ms IS NULL;
CREATE INDEX accounts_closed ON accounts (lower(name), name) WHERE closed_at_ms IS NOT NULL;
-- Of the keys that have ever been banned.
CREATE INDEX key_standings_by_ban ON key_standings (banned_until_ms, key_id) WHERE banned_until_ms > 0;

-- Every role that may use the animals may use the new tables: the services need not own the database.
DO $$
DECLARE
    allowed record;
BEGIN
    FOR allowed IN
        SELECT relation, privilege_type AS what,
            CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END AS who
        FROM unnest(ARRAY['people', 'sign_in_links', 'sessions', 'known_addresses', 'known_devices',
            'sign_in_tries', 'stock_uploads', 'stock_upload_parts']) AS relation, pg_class,
            aclexplode(coalesce(relacl, acldefault('r', relowner)))
        WHERE pg_class.oid = 'pets'::regclass AND privilege_type IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE')
    LOOP
        EXECUTE format('GRANT %s ON %I TO %s', allowed.what, allowed.relation, allowed.who);
    END LOOP;
END
$$;
