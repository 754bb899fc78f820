"""nvprof: the database and the printed tables."""
