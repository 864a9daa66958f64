"""From trained models to translations."""
