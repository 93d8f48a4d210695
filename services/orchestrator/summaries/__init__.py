"""Summaries of whole documents: all chunks are read in order, section by section, and every sentence cites its page."""
