"""What ingestion keeps in the message store: files, records, queues, dead letters."""
