-- oldest: 2
-- The index for searches, which the background process makes of the tables and the journal. No extension: what
-- pg_trgm takes for a letter depends on the locale of the database.
CREATE TABLE search_pets (id bigint PRIMARY KEY, grams integer[] NOT NULL);
CREATE INDEX search_pets_by_grams ON search_pets USING gin (grams);
CREATE TABLE search_orders (id bigint PRIMARY KEY, grams integer[] NOT NULL);
CREATE INDEX search_orders_by_grams ON search_orders USING gin (grams);
CREATE TABLE search_accounts (id bigint PRIMARY KEY, grams integer[] NOT NULL);
CREATE INDEX search_accounts_by_grams ON search_accounts USING gin (grams);

-- How far it is: core/search.py, Progress.
CREATE TABLE search_progress (
    data_set          text NOT NULL,
    place_transaction bigint NOT NULL,
    place_id          bigint NOT NULL,
    walked            text NOT NULL,
    after_id          bigint NOT NULL,
    format            integer NOT NULL
);

-- Somebody who finds a key knows its last four characters.
CREATE INDEX api_keys_by_end ON api_keys (right(display, 4));
