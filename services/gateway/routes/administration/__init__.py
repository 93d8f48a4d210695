"""What administrators see and set: limits, costs, models, jobs, MCP servers."""
