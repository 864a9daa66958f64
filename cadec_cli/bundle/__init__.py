"""A bundle on disk: manifest, checksums, opening, building."""
