"""Bodies about limits, costs, models, jobs and MCP servers."""
