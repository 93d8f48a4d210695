"""What reading does to files: the encodings that it detects, golden pages and sheets, cases that once went wrong."""
