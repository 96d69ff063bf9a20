-- oldest: 1
-- How a list was read, in JSON; NULL before its first check, and of a list that a program of 1.1.0 checked.
ALTER TABLE stock_uploads ADD COLUMN reading TEXT;

-- What staff have said of a supplier's columns: headings, sorted and as they are compared, one a line; and in JSON
-- what each means.
CREATE TABLE stock_columns (
    headings TEXT PRIMARY KEY,
    meanings TEXT NOT NULL,
    at_ms    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
