"""Questions, chats and what belongs to them: runs, threads, approvals, agents, memory."""
