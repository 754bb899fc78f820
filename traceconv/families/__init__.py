"""The formats, one package for each family of tools: readers, helpers, and for Chrome and Perfetto the writers.

Nothing is imported here; `registry` loads a format's module when it is asked for. `index` says which module that is.
"""
