-- oldest: 2
-- Addresses of mail of an account or a person. `off` are the kinds of notifications that it does not take, separated
-- by commas; who knows the token may change them.
CREATE TABLE contacts (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id    bigint REFERENCES accounts (id),
    person_id     bigint REFERENCES people (id),
    address       text COLLATE "C" NOT NULL,
    off           text COLLATE "C" NOT NULL,
    token         text COLLATE "C" NOT NULL UNIQUE,
    created_at_ms bigint NOT NULL,
    fault         text,
    fault_at_ms   bigint,
    CHECK ((account_id IS NULL) <> (person_id IS NULL))
);
CREATE UNIQUE INDEX contacts_by_account ON contacts (account_id, address) WHERE account_id IS NOT NULL;
CREATE UNIQUE INDEX contacts_by_person ON contacts (person_id, address) WHERE person_id IS NOT NULL;

-- Mails that are not sent yet: `said` are sentences in JSON, of the first of `count` facts. `begun` counts the tries
-- that may have succeeded, `tries` those that failed.
CREATE TABLE mails (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    contact_id    bigint NOT NULL REFERENCES contacts (id) ON DELETE CASCADE,
    kind          text COLLATE "C" NOT NULL,
    said          text NOT NULL,
    count         bigint NOT NULL,
    created_at_ms bigint NOT NULL,
    due_ms        bigint NOT NULL,
    tries         bigint NOT NULL DEFAULT 0,
    begun         bigint NOT NULL DEFAULT 0
);
CREATE INDEX mails_by_time ON mails (due_ms, id);
CREATE INDEX mails_by_contact ON mails (contact_id, kind);

-- Up to where the journal's facts are in mails: a place in a data set.
CREATE TABLE notified (
    id                bigint PRIMARY KEY CHECK (id = 1),
    data_set          text COLLATE "C" NOT NULL,
    after_transaction bigint NOT NULL,
    after_id          bigint NOT NULL
);

-- Every role that may use the animals may use the new tables: the services need not own the database.
DO $$
DECLARE
    allowed record;
BEGIN
    FOR allowed IN
        SELECT relation, privilege_type AS what,
            CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END AS who
        FROM unnest(ARRAY['contacts', 'mails', 'notified']) AS relation, pg_class,
            aclexplode(coalesce(relacl, acldefault('r', relowner)))
        WHERE pg_class.oid = 'pets'::regclass AND privilege_type IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE')
    LOOP
        EXECUTE format('GRANT %s ON %I TO %s', allowed.what, allowed.relation, allowed.who);
    END LOOP;
END
$$;
