"""Questions in SQL about a trace."""
