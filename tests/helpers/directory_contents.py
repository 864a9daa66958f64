"""What is in a directory, for tests that compare before and after."""

from pathlib import Path


def contents(directory: Path) -> dict[str, bytes]:
    """All files below a directory, hidden ones too."""
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }
