"""What agents make besides their text: the kinds that all clients know, and what holds for each artefact."""
