-- oldest: 2
-- A step of its own: while the index is built, additions and changes of animals wait, and nothing else does.
-- It serves a search by the beginning of a name; ASCII letters of both cases are the same.
CREATE INDEX pets_by_name ON pets (lower(name COLLATE "C"), id);
