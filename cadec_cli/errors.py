"""The one error class that users see: what happened, and what to do about it. And what Ctrl-C leaves."""


class CadecError(Exception):
    """Something the user can act on. Printed as one red line and a hint, never as a traceback."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class Interrupted(Exception):  # noqa: N818 - it is no error
    """Ctrl-C, with what there is to say of the work that it stopped.

    Not a KeyboardInterrupt: those are Typer's, which says nothing.
    """
