"""Files of records: each record becomes a row of its values behind their names."""
