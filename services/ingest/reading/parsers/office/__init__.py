"""Office documents: Word, PowerPoint, Excel, OpenDocument and rich text."""
