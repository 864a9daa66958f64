"""What must not be translated: spans, tags, affixes, and the core that is left."""
