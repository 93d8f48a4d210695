"""A job on its way: how it is tried, what each try costs, and the steps from a stored file to a searchable document."""
