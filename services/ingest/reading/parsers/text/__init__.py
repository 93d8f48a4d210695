"""Text with or without markup, source code and subtitles."""
