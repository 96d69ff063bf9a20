"""Plans, windows and bans as arithmetic, and what a request is told of them."""
