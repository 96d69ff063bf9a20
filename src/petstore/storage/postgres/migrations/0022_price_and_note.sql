-- oldest: 2
-- What staff keep of an animal: its price in hundredths, and a note.
ALTER TABLE pets ADD COLUMN price bigint;
ALTER TABLE pets ADD COLUMN note text;
