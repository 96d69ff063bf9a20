-- oldest: 1
-- An Idempotency-Key may have created anything, not an animal alone.
ALTER TABLE idempotency_keys RENAME TO creations;
ALTER TABLE creations RENAME COLUMN pet_id TO resource_id;
ALTER TABLE creations ADD COLUMN resource TEXT NOT NULL DEFAULT 'pet';
DROP INDEX idempotency_keys_by_age;
CREATE INDEX creations_by_age ON creations (created_at_ms);

-- For programs of 1.0.0, which read, add, replace and delete. The version after 1.1.0 drops it.
CREATE VIEW idempotency_keys AS
SELECT account_id, key, fingerprint, resource_id AS pet_id, created_at_ms FROM creations WHERE resource = 'pet';

CREATE TRIGGER idempotency_keys_added INSTEAD OF INSERT ON idempotency_keys BEGIN
    INSERT OR REPLACE INTO creations (account_id, key, resource, fingerprint, resource_id, created_at_ms)
    VALUES (NEW.account_id, NEW.key, 'pet', NEW.fingerprint, NEW.pet_id, NEW.created_at_ms);
END;
CREATE TRIGGER idempotency_keys_removed INSTEAD OF DELETE ON idempotency_keys BEGIN
    DELETE FROM creations WHERE account_id = OLD.account_id AND key = OLD.key;
END;
