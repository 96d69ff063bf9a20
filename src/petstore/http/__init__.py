"""HTTP/1.1 on the sockets of clients: requests in, answers out. Parsing is llhttp's, by httptools."""
