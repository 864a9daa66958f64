"""Subtitle files: cues, tags, wrapping, and the layout to put translations back into."""
