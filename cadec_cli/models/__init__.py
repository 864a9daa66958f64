"""The torch networks; they see token ids, never text."""
