"""Models that can be had by name: what there is, and how one becomes a named bundle.

catalogue.json    translation models and language models: where they are, languages, size, licence
entries.py        that file, read; names put together
pulling.py        from a name to a bundle, by way of the hub
"""
