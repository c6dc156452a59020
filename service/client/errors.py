"""Why a question to the API has no answer.

ClientError
    ApiUnreachable      nobody answers at that URL, or not in time
    ApiRefused          the API answered with an error of its own
    AnswerUnreadable    something answered, and it is not this API (a login page, an old version)
"""

from __future__ import annotations


class ClientError(Exception):
    """A question that has no answer; `hint` says what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class ApiUnreachable(ClientError):
    """Nobody answers at the API's URL."""


class AnswerUnreadable(ClientError):
    """Something answers at the API's URL that is not the API."""


class ApiRefused(ClientError):
    """The API says no, and why."""

    def __init__(
        self, *, status: int, code: str, message: str, hint: str = "", reasons: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message, hint)
        self.status = status
        """HTTP status."""
        self.code = code
        """The API's word for it, such as `verdict_not_accept`."""
        self.reasons = reasons
        """The verdict's reasons, where a verdict stands in the way."""
