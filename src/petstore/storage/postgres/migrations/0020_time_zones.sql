-- oldest: 2
-- The name of a time zone, where a person has chosen one of their own.
ALTER TABLE people ADD COLUMN time_zone text COLLATE "C";
