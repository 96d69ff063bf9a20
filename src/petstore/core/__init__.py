"""The pure rules: animals, accounts, keys, limits, errors, the clock. No framework, no SQL, no edge."""
