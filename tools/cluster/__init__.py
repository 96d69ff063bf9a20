"""`make cluster`: PostgreSQL, Valkey, two replicas and nginx as plain processes on one machine."""
