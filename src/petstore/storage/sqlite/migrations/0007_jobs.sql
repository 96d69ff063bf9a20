-- oldest: 1
-- What the background process has to do. A job may be taken once its deadline has passed; its owner moves it on.
CREATE TABLE jobs (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    kind        TEXT NOT NULL,
    subject     INTEGER NOT NULL,
    owner       TEXT NOT NULL,
    deadline_ms INTEGER NOT NULL,
    attempts    INTEGER NOT NULL,
    done        INTEGER NOT NULL,
    UNIQUE (kind, subject)
) STRICT;
