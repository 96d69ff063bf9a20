-- oldest: 2
ALTER TABLE api_keys ADD COLUMN access text COLLATE "C" NOT NULL DEFAULT 'write'
    CHECK (access IN ('read', 'write', 'manage'));
ALTER TABLE accounts ADD COLUMN suspended_at_ms bigint;
ALTER TABLE accounts ADD COLUMN closed_at_ms bigint;

-- No foreign key to the animal: a delivered or cancelled order outlives it.
CREATE TABLE orders (
    id            bigint GENERATED ALWAYS AS IDENTITY (MAXVALUE 9007199254740991) PRIMARY KEY,
    account_id    bigint NOT NULL REFERENCES accounts (id),
    pet_id        bigint NOT NULL,
    status        text COLLATE "C" NOT NULL CHECK (status IN ('placed', 'approved', 'delivered', 'cancelled')),
    ship_date_ms  bigint,
    created_at_ms bigint NOT NULL
);
CREATE INDEX orders_by_account ON orders (account_id, id);
CREATE INDEX orders_by_account_and_status ON orders (account_id, status, id);
CREATE INDEX orders_by_status ON orders (status, id);
-- No animal is in two open orders, whatever program writes.
CREATE UNIQUE INDEX open_orders_by_pet ON orders (pet_id) WHERE status IN ('placed', 'approved');

-- Labels for people: an animal's category needs no row here.
CREATE TABLE categories (
    id   bigint PRIMARY KEY,
    name text NOT NULL
);

-- The identifiers of stock lists, so that a list that is imported again finds its animals.
CREATE TABLE pet_sources (
    source_key text COLLATE "C" PRIMARY KEY,
    pet_id     bigint NOT NULL UNIQUE REFERENCES pets (id) ON DELETE CASCADE
);

-- Every role that may use the animals may use the new tables: the services need not own the database.
DO $$
DECLARE
    allowed record;
BEGIN
    FOR allowed IN
        SELECT relation, privilege_type AS what,
            CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END AS who
        FROM unnest(ARRAY['orders', 'categories', 'pet_sources']) AS relation, pg_class,
            aclexplode(coalesce(relacl, acldefault('r', relowner)))
        WHERE pg_class.oid = 'pets'::regclass AND privilege_type IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE')
    LOOP
        EXECUTE format('GRANT %s ON %I TO %s', allowed.what, allowed.relation, allowed.who);
    END LOOP;
END
$$;
