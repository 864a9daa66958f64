"""Protection of translations: lost spans, defects, and the places of tags."""
