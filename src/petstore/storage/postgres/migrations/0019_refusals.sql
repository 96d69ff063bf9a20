-- oldest: 2
-- The last refused requests of each account.
CREATE TABLE refusals (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id bigint NOT NULL,
    at_ms      bigint NOT NULL,
    key_id     bigint NOT NULL,
    method     text COLLATE "C" NOT NULL,
    path       text COLLATE "C",
    status     bigint NOT NULL,
    code       text COLLATE "C" NOT NULL,
    of_window  text COLLATE "C",
    address    text COLLATE "C"
);
CREATE INDEX refusals_by_account ON refusals (account_id, id);

-- Every role that may use the animals may use the new table: the services need not own the database.
DO $$
DECLARE
    allowed record;
BEGIN
    FOR allowed IN
        SELECT privilege_type AS what, CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END AS who
        FROM pg_class, aclexplode(coalesce(relacl, acldefault('r', relowner)))
        WHERE pg_class.oid = 'pets'::regclass AND privilege_type IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE')
    LOOP
        EXECUTE format('GRANT %s ON refusals TO %s', allowed.what, allowed.who);
    END LOOP;
END
$$;
