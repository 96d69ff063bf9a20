-- oldest: 1
-- What staff know of the person behind an account. All of it is personal.
CREATE TABLE customers (
    account_id INTEGER PRIMARY KEY REFERENCES accounts (id),
    name       TEXT,
    email      TEXT,
    phone      TEXT,
    address    TEXT,
    remark     TEXT
) STRICT;
