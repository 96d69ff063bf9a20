-- oldest: 2
-- An Idempotency-Key may have created anything, not an animal alone.
ALTER TABLE idempotency_keys RENAME TO creations;
ALTER TABLE creations RENAME COLUMN pet_id TO resource_id;
ALTER TABLE creations ADD COLUMN resource text COLLATE "C" NOT NULL DEFAULT 'pet';
ALTER INDEX idempotency_keys_pkey RENAME TO creations_pkey;
ALTER INDEX idempotency_keys_by_age RENAME TO creations_by_age;

-- For programs of 1.0.0, which read and write through it. The version after 1.1.0 drops it, and the default above.
CREATE VIEW idempotency_keys AS
SELECT account_id, key, fingerprint, resource_id AS pet_id, created_at_ms FROM creations WHERE resource = 'pet';

-- Every role that may use the table may use the view: the services of 1.0.0 need not be its owner, and the owner
-- need not be the role that migrates. Without a GRANT relacl is NULL and means the default, the owner alone.
DO $$
DECLARE
    allowed record;
BEGIN
    FOR allowed IN
        SELECT privilege_type AS what, CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END AS who
        FROM pg_class, aclexplode(coalesce(relacl, acldefault('r', relowner)))
        WHERE pg_class.oid = 'creations'::regclass AND privilege_type IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE')
    LOOP
        EXECUTE format('GRANT %s ON idempotency_keys TO %s', allowed.what, allowed.who);
    END LOOP;
END
$$;
