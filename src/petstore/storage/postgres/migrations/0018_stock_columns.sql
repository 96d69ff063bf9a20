-- oldest: 2
-- How a list was read, in JSON; NULL before its first check, and of a list that a program of 1.1.0 checked.
ALTER TABLE stock_uploads ADD COLUMN reading text;

-- What staff have said of a supplier's columns: headings, sorted and as they are compared, one a line; and in JSON
-- what each means.
CREATE TABLE stock_columns (
    headings text COLLATE "C" PRIMARY KEY,
    meanings text NOT NULL,
    at_ms    bigint NOT NULL
);

-- Every role that may use the animals may use the columns.
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
        EXECUTE format('GRANT %s ON stock_columns TO %s', allowed.what, allowed.who);
    END LOOP;
END
$$;
