"""Peers: the same job as other teams would write it. README.md says what each is and how it is fair."""
