"""What a run leaves behind: the recording, and the reports that are pure functions of it."""
