"""The calls of one round: as the model requests them, as they are planned, made and observed."""
