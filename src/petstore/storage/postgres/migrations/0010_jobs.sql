-- oldest: 2
-- What the background process has to do. A job may be taken once its deadline has passed; its owner moves it on.
CREATE TABLE jobs (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind        text COLLATE "C" NOT NULL,
    subject     bigint NOT NULL,
    owner       text COLLATE "C" NOT NULL,
    deadline_ms bigint NOT NULL,
    attempts    bigint NOT NULL,
    done        bigint NOT NULL,
    UNIQUE (kind, subject)
);

-- Whoever may use the animals may use the jobs.
DO $$
DECLARE
    allowed record;
BEGIN
    FOR allowed IN
        SELECT privilege_type AS what,
            CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END AS who
        FROM pg_class, aclexplode(coalesce(relacl, acldefault('r', relowner)))
        WHERE pg_class.oid = 'pets'::regclass AND privilege_type IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE')
    LOOP
        EXECUTE format('GRANT %s ON jobs TO %s', allowed.what, allowed.who);
    END LOOP;
END
$$;
