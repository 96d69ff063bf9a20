"""A store for trying and showing: animals, customers, orders and ten weeks of usage, from a seed."""
