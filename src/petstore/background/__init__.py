"""The work of a service beside requests: jobs that wait in the store, and what each kind does."""
