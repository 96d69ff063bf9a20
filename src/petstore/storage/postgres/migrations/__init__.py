"""The schema's steps for PostgreSQL, as SQL files."""
