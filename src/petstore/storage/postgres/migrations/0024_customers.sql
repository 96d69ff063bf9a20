-- oldest: 2
-- What staff know of the person behind an account. All of it is personal.
CREATE TABLE customers (
    account_id bigint PRIMARY KEY REFERENCES accounts (id),
    name       text,
    email      text,
    phone      text,
    address    text,
    remark     text
);

-- Every role that may use the animals may use the new table: the services need not own the database.
DO $$
DECLARE
    allowed record;
BEGIN
    FOR allowed IN
        SELECT relation, privilege_type AS what,
            CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END AS who
        FROM unnest(ARRAY['customers']) AS relation, pg_class,
            aclexplode(coalesce(relacl, acldefault('r', relowner)))
        WHERE pg_class.oid = 'pets'::regclass AND privilege_type IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE')
    LOOP
        EXECUTE format('GRANT %s ON %I TO %s', allowed.what, allowed.relation, allowed.who);
    END LOOP;
END
$$;
