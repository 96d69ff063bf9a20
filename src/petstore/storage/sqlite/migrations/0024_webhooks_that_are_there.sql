-- oldest: 1
-- Removed ones stay as long as their events, and one account may have thousands: nobody who looks for its webhooks, or
-- for those of a key, passes them by.
DROP INDEX webhooks_by_account;
DROP INDEX webhooks_by_key;
CREATE INDEX webhooks_by_account ON webhooks (account_id, id) WHERE removed_at_ms IS NULL;
CREATE INDEX webhooks_by_key ON webhooks (key_id) WHERE removed_at_ms IS NULL;
