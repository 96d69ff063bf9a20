"""The contract: an OpenAPI document, written by hand."""
