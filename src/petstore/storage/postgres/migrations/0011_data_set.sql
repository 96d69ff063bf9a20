-- oldest: 2
-- Which data this is: events and bookmarks name it. A restored copy gets another identity when `stamp`, the place of
-- the journal, no longer fits; it is empty until the first bookmark. Entries up to `base_id` came with the data, in
-- the order of `id`; later ones, of transactions from `base_transaction` on, are in the order of (transaction, id).
-- Entries up to (gone_transaction, gone_id) are removed or about to be; `is_whole`: the journal begins with the first
-- animal.
CREATE TABLE data_set (
    one              boolean PRIMARY KEY CHECK (one),
    identity         text NOT NULL,
    is_whole         boolean NOT NULL,
    gone_transaction xid8 NOT NULL,
    gone_id          bigint NOT NULL,
    stamp            text NOT NULL,
    base_id          bigint NOT NULL,
    base_transaction xid8 NOT NULL
);
INSERT INTO data_set
SELECT true, left(replace(gen_random_uuid()::text, '-', ''), 12), NOT EXISTS (
    SELECT 1 FROM pets WHERE NOT EXISTS (
        SELECT 1 FROM journal WHERE subject = 'pet' AND subject_id = pets.id AND action = 'added'
    )
), '0', 0, '', 0, '0';
-- The journal may have come from another cluster, whose transactions mean nothing here.
LOCK TABLE journal IN SHARE ROW EXCLUSIVE MODE;
UPDATE data_set SET base_id = (SELECT coalesce(max(id), 0) FROM journal),
    base_transaction = pg_snapshot_xmin(pg_current_snapshot());

-- Whoever may use the animals may use it.
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
        EXECUTE format('GRANT %s ON data_set TO %s', allowed.what, allowed.who);
    END LOOP;
END
$$;
