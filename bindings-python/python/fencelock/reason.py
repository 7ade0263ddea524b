"""The reason a job is not run."""

import enum


class Reason(enum.StrEnum):
    """The reason no run was started. The members are strings, too."""

    RUNNING = "running"
    """The last run is in progress."""
    DONE = "done"
    """The instant that is due was run, or its run has died and is not run again."""
    NOT_DUE = "not_due"
    """The last run started less than half a period ago, or less than its ``at_least_for``, or it was for a later instant."""
