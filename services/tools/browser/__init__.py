"""A real browser as a tool: what it is asked, and what it answers."""
