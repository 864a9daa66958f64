"""Pretrained language models of other toolkits, as D-LMs."""
