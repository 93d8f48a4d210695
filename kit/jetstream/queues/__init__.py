"""Work queues: tenants take turns, and no job is lost."""
