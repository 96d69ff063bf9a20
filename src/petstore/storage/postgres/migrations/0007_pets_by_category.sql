-- oldest: 2
-- A step of its own: while the index is built, additions and changes of animals wait, and nothing else does.
-- It serves a page of a category with its status, and without one by merging three walks.
CREATE INDEX pets_by_category ON pets (category_id, status, id);
