-- oldest: 2
-- A webhook may have millions of tries: it is gone once it has this mark, and its rows leave later, in small steps.
ALTER TABLE webhooks ADD COLUMN removed_at_ms bigint;
CREATE INDEX webhooks_removed ON webhooks (id) WHERE removed_at_ms IS NOT NULL;
