"""What computes probabilities, behind two small protocols."""
