"""The suite's own YAML files, read into typed values; what is wrong with one is told in a sentence."""

from typing import Any, Final, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

_Loader: Final[type[Any]] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's where PyYAML was built with it: ten times as fast, the same values."""
Model = TypeVar("Model", bound=BaseModel)


class UnreadableYaml(Exception):
    """One sentence with the first mistake."""


def plain_yaml(text: str) -> Any:
    """The plain values of a document of the suite's own. Raises yaml.YAMLError."""
    return yaml.load(text, Loader=_Loader)


def read_yaml(text: str, model: type[Model]) -> Model:
    """What stands in a file's text. Raises UnreadableYaml."""
    try:
        return model.model_validate(plain_yaml(text))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise UnreadableYaml(f"{place}: {first['msg']}") from error
    except yaml.YAMLError as error:
        raise UnreadableYaml(f"it is no YAML: {' '.join(str(error).split())}") from error
