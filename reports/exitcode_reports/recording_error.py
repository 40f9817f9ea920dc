"""The errors of reading and writing a recording: one sentence says what is wrong, one what to do."""


class RecordingError(Exception):
    """A recording cannot be read, or not be written on."""

    def __init__(self, problem: str, advice: str) -> None:
        super().__init__(f"{problem} {advice}")
        self.problem = problem
        self.advice = advice


class SecretRefused(RecordingError):
    """Something was about to be recorded that looks like a credential. Nothing of it was written."""
