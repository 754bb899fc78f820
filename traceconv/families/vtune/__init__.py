"""Intel VTune: reports and external collection files."""
