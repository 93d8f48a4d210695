"""Dynamic batching: the texts of all callers share one model."""
