"""The console: pages for staff and operators, made on the server, which work without JavaScript too."""
