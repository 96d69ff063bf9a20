-- oldest: 1
ALTER TABLE api_keys ADD COLUMN access TEXT NOT NULL DEFAULT 'write' CHECK (access IN ('read', 'write', 'manage'));
ALTER TABLE accounts ADD COLUMN suspended_at_ms INTEGER;
ALTER TABLE accounts ADD COLUMN closed_at_ms INTEGER;

-- Serves a page of a category with its status, and without one by merging three walks.
CREATE INDEX pets_by_category ON pets (category_id, status);

-- No foreign key to the animal: a delivered or cancelled order outlives it.
CREATE TABLE orders (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id    INTEGER NOT NULL REFERENCES accounts (id),
    pet_id        INTEGER NOT NULL,
    status        TEXT NOT NULL CHECK (status IN ('placed', 'approved', 'delivered', 'cancelled')),
    ship_date_ms  INTEGER,
    created_at_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX orders_by_account ON orders (account_id);
CREATE INDEX orders_by_account_and_status ON orders (account_id, status);
CREATE INDEX orders_by_status ON orders (status);
-- No animal is in two open orders, whatever program writes.
CREATE UNIQUE INDEX open_orders_by_pet ON orders (pet_id) WHERE status IN ('placed', 'approved');

-- Labels for people: an animal's category needs no row here.
CREATE TABLE categories (
    id   INTEGER PRIMARY KEY,
    name TEXT NOT NULL
) STRICT;

-- The identifiers of stock lists, so that a list that is imported again finds its animals.
CREATE TABLE pet_sources (
    source_key TEXT PRIMARY KEY,
    pet_id     INTEGER NOT NULL UNIQUE REFERENCES pets (id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TRIGGER categories_added   AFTER INSERT ON categories BEGIN UPDATE versions SET catalogue = catalogue + 1; END;
CREATE TRIGGER categories_changed AFTER UPDATE ON categories BEGIN UPDATE versions SET catalogue = catalogue + 1; END;
CREATE TRIGGER categories_removed AFTER DELETE ON categories BEGIN UPDATE versions SET catalogue = catalogue + 1; END;
