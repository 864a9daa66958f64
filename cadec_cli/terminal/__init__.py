"""Shared by all commands: flags, inputs, outputs, progress and views."""
