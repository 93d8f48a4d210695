"""Watching over what the message store holds: a ledger outside of it, compared at each start and now and then, so that damage is
seen, named and, where the ledger has what was lost, mended."""
