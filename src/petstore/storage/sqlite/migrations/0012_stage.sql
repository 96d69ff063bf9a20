-- oldest: 1
-- The stage that has first served this data: production or staging. NULL: none had one.
ALTER TABLE data_set ADD COLUMN stage TEXT;
