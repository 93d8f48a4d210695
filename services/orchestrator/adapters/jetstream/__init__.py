"""What the orchestrator keeps in the message store: logs and records of runs, limits, models."""
