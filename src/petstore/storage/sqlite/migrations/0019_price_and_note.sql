-- oldest: 1
-- What staff keep of an animal: its price in hundredths, and a note.
ALTER TABLE pets ADD COLUMN price INTEGER;
ALTER TABLE pets ADD COLUMN note TEXT;
