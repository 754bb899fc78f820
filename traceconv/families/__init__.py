"""The formats, in one package for each family of tools: importers, and for Chrome and Perfetto also the writers.

Nothing is imported here: `registry` loads the module of a format on first use, and `index` names it.
"""
