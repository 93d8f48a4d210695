"""A document's record and its life: upload, names, revisions, listing, deletion; and the collections that hold documents."""
