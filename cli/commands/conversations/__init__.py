"""Commands that ask, and that show what belongs to questions: runs, threads, approvals, agents, memory."""
