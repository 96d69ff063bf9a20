"""What a load needs and what a store takes: a model, and measurements of its constants."""
