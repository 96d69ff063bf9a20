-- oldest: 1
-- Serves a search by the beginning of a name; ASCII letters of both cases are the same.
CREATE INDEX pets_by_name ON pets (name COLLATE NOCASE);
