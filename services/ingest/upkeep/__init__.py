"""What one leading worker does for all of them, again and again: sweep, reconcile, collect, clear, scrub, count."""
