"""Tools that read the files of Google Drive."""
