-- oldest: 1
-- Somebody who finds a key knows its last four characters.
CREATE INDEX api_keys_by_end ON api_keys (substr(display, -4));
