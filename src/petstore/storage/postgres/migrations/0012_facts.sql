-- oldest: 2
-- Which facts that change nothing else are in the journal: bans, used days and ends of keys, each with the moment that
-- it is of. No foreign keys: old rows leave by themselves.
CREATE TABLE facts (
    of_ms   bigint NOT NULL,
    kind    text COLLATE "C" NOT NULL,
    subject bigint NOT NULL,
    PRIMARY KEY (of_ms, kind, subject)
);

-- Whoever may use the animals may use the facts.
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
        EXECUTE format('GRANT %s ON facts TO %s', allowed.what, allowed.who);
    END LOOP;
END
$$;
