"""What pages need, whoever makes them: content, static files, negotiation, the address of the service."""
