"""Text that must not be translated: spans, tags and affixes; and the core that remains."""
