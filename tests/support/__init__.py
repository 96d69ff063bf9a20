"""What tests share: a steered clock, the production service in process, and a client without manners."""
