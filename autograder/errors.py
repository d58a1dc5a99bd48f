"""The one error that the command line turns into a line of text and exit code 2."""


class PlainError(Exception):
    """Something that the user can mend; the message is one sentence: what, where, what to do."""
