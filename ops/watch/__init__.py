"""The watch over what the message store of one machine holds. A ledger outside of the store is compared with it at each start and
every hour. Damage is seen and named; what the ledger has is put back."""
