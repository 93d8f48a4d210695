"""Reading of files that nobody keeps: for tools, which want to know what a file of the web says."""
