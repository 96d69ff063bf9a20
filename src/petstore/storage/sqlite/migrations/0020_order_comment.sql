-- oldest: 1
-- What staff write about an order.
ALTER TABLE orders ADD COLUMN comment TEXT;
