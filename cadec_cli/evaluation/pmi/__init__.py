"""PMI of texts with their contexts."""
