-- oldest: 2
-- Which order sold an animal. A step of its own: while the index is built, changes of orders wait, and nothing else does.
CREATE INDEX delivered_orders_by_pet ON orders (pet_id, id) WHERE status = 'delivered';
