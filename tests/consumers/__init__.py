"""Other people's tools against the contract that a real server serves: what they make of it has to work."""
