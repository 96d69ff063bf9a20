-- oldest: 2
-- The journal of changes replaces the history of statuses. No foreign keys: removed objects keep their entries.
-- An entry's type is `subject.action`; before and after are JSON objects of the members that changed, as text,
-- so that a copy from SQLite is the same. Identifiers are handed out before commits: in the order of
-- (transaction, id), below the oldest transaction that runs, no entry appears late.
CREATE TABLE journal (
    id          bigint GENERATED ALWAYS AS IDENTITY,
    at_ms       bigint NOT NULL,
    actor       text NOT NULL,
    subject      text COLLATE "C" NOT NULL,
    subject_id   bigint NOT NULL,
    action      text COLLATE "C" NOT NULL,
    before      text,
    after       text,
    transaction xid8 NOT NULL DEFAULT pg_current_xact_id(),
    PRIMARY KEY (id)
);
CREATE INDEX journal_by_subject ON journal (subject, subject_id, id);
CREATE INDEX journal_in_order ON journal (transaction, id);

-- A program of 1.0.0 that adds to the history meanwhile is waited for, and then waits.
LOCK TABLE pet_status_changes;
INSERT INTO journal (at_ms, actor, subject, subject_id, action, before, after)
SELECT at_ms, actor, 'pet', pet_id, 'changed',
    '{"status":"' || from_status || '"}', '{"status":"' || to_status || '"}'
FROM pet_status_changes ORDER BY id;
ALTER TABLE pet_status_changes RENAME TO former_status_changes;

-- For programs of 1.0.0, which read and add. The version after 1.1.0 drops it.
CREATE VIEW pet_status_changes AS
SELECT id, subject_id AS pet_id, at_ms, actor, before::json ->> 'status' AS from_status,
    after::json ->> 'status' AS to_status
FROM journal WHERE subject = 'pet' AND action = 'changed' AND after::json ->> 'status' IS NOT NULL;

CREATE FUNCTION add_pet_status_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO journal (at_ms, actor, subject, subject_id, action, before, after)
    VALUES (NEW.at_ms, NEW.actor, 'pet', NEW.pet_id, 'changed',
        '{"status":"' || NEW.from_status || '"}', '{"status":"' || NEW.to_status || '"}');
    RETURN NEW;
END
$$;
CREATE TRIGGER pet_status_changes_added INSTEAD OF INSERT ON pet_status_changes
FOR EACH ROW EXECUTE FUNCTION add_pet_status_change();

-- Every role that may use the animals may use the journal: the services need not own the database.
DO $$
DECLARE
    allowed record;
BEGIN
    FOR allowed IN
        SELECT relation, privilege_type AS what,
            CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END AS who
        FROM unnest(ARRAY['journal', 'pet_status_changes']) AS relation, pg_class,
            aclexplode(coalesce(relacl, acldefault('r', relowner)))
        WHERE pg_class.oid = 'former_status_changes'::regclass
            AND privilege_type IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE')
    LOOP
        EXECUTE format('GRANT %s ON %I TO %s', allowed.what, allowed.relation, allowed.who);
    END LOOP;
END
$$;
DROP TABLE former_status_changes;
