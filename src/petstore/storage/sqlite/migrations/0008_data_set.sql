-- oldest: 1
-- Which data this is: events and bookmarks name it, and a restored copy gets another identity. Entries up to
-- `gone_id` are removed or about to be; `is_whole`: the journal begins with the first animal.
CREATE TABLE data_set (
    one      INTEGER PRIMARY KEY CHECK (one = 1),
    identity TEXT NOT NULL,
    is_whole INTEGER NOT NULL,
    gone_id  INTEGER NOT NULL
) STRICT;
INSERT INTO data_set SELECT 1, lower(hex(randomblob(6))), NOT EXISTS (
    SELECT 1 FROM pets WHERE NOT EXISTS (
        SELECT 1 FROM journal WHERE subject = 'pet' AND subject_id = pets.id AND action = 'added'
    )
), 0;
