"""The base of every value of ours: immutable, keyword-only, and strict about keys it does not know."""

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """A value. Unknown keys are refused, so that a misspelt key in a file is an error and never a default."""

    model_config = ConfigDict(frozen=True, extra="forbid")
