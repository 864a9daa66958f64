"""Contrastive tests: sets, scores, accuracies."""
