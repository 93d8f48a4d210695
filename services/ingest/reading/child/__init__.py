"""The parsing child: a process that may die of a file."""
