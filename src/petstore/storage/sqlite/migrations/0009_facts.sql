-- oldest: 1
-- Which facts that change nothing else are in the journal: bans, used days and ends of keys, each with the moment that
-- it is of. No foreign keys: old rows leave by themselves.
CREATE TABLE facts (
    of_ms   INTEGER NOT NULL,
    kind    TEXT NOT NULL,
    subject INTEGER NOT NULL,
    PRIMARY KEY (of_ms, kind, subject)
) STRICT, WITHOUT ROWID;
