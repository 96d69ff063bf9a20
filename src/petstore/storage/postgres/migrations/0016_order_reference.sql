-- oldest: 2
-- The customer's own text of an order.
ALTER TABLE orders ADD COLUMN reference text;
