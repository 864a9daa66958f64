"""The engines that run models and compute probabilities, behind two small protocols."""
