-- oldest: 2
-- What staff write about an order.
ALTER TABLE orders ADD COLUMN comment text;
