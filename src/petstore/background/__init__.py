"""The work of a service beside requests: jobs that wait in the store, and the removal of what is not kept."""
