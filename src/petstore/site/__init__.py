"""Pages for people and documents for programs, outside /v1: start page, API reference, OpenAPI document."""
