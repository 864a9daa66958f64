"""Files: reading, whole writes, locks, paths."""
