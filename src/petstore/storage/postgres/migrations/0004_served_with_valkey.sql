-- oldest: 2
-- The table of 0002 by the name of what its one row says: processes serve with Valkey.
ALTER TABLE shared_counters RENAME TO served_with_valkey;
ALTER INDEX shared_counters_pkey RENAME TO served_with_valkey_pkey;

-- For programs of 1.0.0. The version after 1.1.0 drops it.
CREATE VIEW shared_counters AS SELECT one FROM served_with_valkey;

DO $$
DECLARE
    allowed record;
BEGIN
    FOR allowed IN
        SELECT privilege_type AS what, CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END AS who
        FROM pg_class, aclexplode(coalesce(relacl, acldefault('r', relowner)))
        WHERE pg_class.oid = 'served_with_valkey'::regclass
            AND privilege_type IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE')
    LOOP
        EXECUTE format('GRANT %s ON shared_counters TO %s', allowed.what, allowed.who);
    END LOOP;
END
$$;
