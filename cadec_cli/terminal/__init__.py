"""What the commands share: flags, inputs, outputs, progress and views."""
