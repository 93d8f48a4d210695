"""Bodies about keys, limits, costs, models, jobs and MCP servers."""
