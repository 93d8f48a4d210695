"""PDF files and pictures: what is printed on pages, as a text layer or to be recognised."""
