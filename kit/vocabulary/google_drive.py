"""What kinds of files Google Drive knows (developers.google.com/workspace/drive/api/guides/mime-types)."""

GOOGLES_OWN = "application/vnd.google-apps."
"""How kinds of Google's own begin: they have no bytes, and are exported or left out."""
FOLDER = f"{GOOGLES_OWN}folder"
_OFFICE = "application/vnd.openxmlformats-officedocument."
EXPORTS = {
    f"{GOOGLES_OWN}document": (f"{_OFFICE}wordprocessingml.document", ".docx"),
    f"{GOOGLES_OWN}spreadsheet": (f"{_OFFICE}spreadsheetml.sheet", ".xlsx"),
    f"{GOOGLES_OWN}presentation": (f"{_OFFICE}presentationml.presentation", ".pptx"),
    f"{GOOGLES_OWN}drawing": ("application/pdf", ".pdf"),
}
"""What documents of Google's own are read as. Others of its own (forms, maps, shortcuts) are left out."""
