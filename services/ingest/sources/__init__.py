"""Sources: places from which collections are filled, and with which they stay in step."""
