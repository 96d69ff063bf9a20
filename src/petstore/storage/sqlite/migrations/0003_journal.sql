-- oldest: 1
-- The journal of changes replaces the history of statuses. No foreign keys: removed objects keep their entries.
-- An entry's type is `subject.action`; before and after are JSON objects of the members that changed.
CREATE TABLE journal (
    id        INTEGER PRIMARY KEY,
    at_ms     INTEGER NOT NULL,
    actor     TEXT NOT NULL,
    subject    TEXT NOT NULL,
    subject_id INTEGER NOT NULL,
    action    TEXT NOT NULL,
    before    TEXT,
    after     TEXT
) STRICT;
CREATE INDEX journal_by_subject ON journal (subject, subject_id);

INSERT INTO journal (at_ms, actor, subject, subject_id, action, before, after)
SELECT at_ms, actor, 'pet', pet_id, 'changed',
    '{"status":"' || from_status || '"}', '{"status":"' || to_status || '"}'
FROM pet_status_changes ORDER BY id;
DROP TABLE pet_status_changes;

-- For programs of 1.0.0, which read and add. The version after 1.1.0 drops it.
CREATE VIEW pet_status_changes AS
SELECT id, subject_id AS pet_id, at_ms, actor, before ->> 'status' AS from_status, after ->> 'status' AS to_status
FROM journal WHERE subject = 'pet' AND action = 'changed' AND after ->> 'status' IS NOT NULL;

CREATE TRIGGER pet_status_changes_added INSTEAD OF INSERT ON pet_status_changes BEGIN
    INSERT INTO journal (at_ms, actor, subject, subject_id, action, before, after)
    VALUES (NEW.at_ms, NEW.actor, 'pet', NEW.pet_id, 'changed',
        '{"status":"' || NEW.from_status || '"}', '{"status":"' || NEW.to_status || '"}');
END;
