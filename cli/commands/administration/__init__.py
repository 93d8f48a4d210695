"""Commands of administrators: limits, costs, models, jobs, MCP servers."""
