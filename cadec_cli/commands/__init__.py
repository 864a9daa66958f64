"""One thin file a command: parse, wire, print."""
