-- oldest: 1
-- Which order sold an animal.
CREATE INDEX delivered_orders_by_pet ON orders (pet_id, id) WHERE status = 'delivered';
