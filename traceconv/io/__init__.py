"""Files in and out: opening and unpacking, SQLite, temporary files, outputs that appear whole or not at all."""
