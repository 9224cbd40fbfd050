"""Arrays by name in .npz files, whatever the names are."""

from __future__ import annotations

from typing import Any, Dict, Mapping

import numpy as np

from .._errors import InvalidModelError


def write_arrays(path: str, arrays: Mapping[str, Any]) -> None:
    """Writes ARRAYS; read_arrays() gives them back in their order."""
    np.savez(path, np.array(list(arrays), dtype=np.str_), *arrays.values())


def read_arrays(path: str) -> Dict[str, Any]:
    """What write_arrays() wrote."""
    with np.load(path) as file:
        return {str(name): file[f"arr_{index}"] for index, name in enumerate(file["arr_0"], 1)}


def given_arrays(path: str) -> Dict[str, Any]:
    """The arrays of a user's .npz file, which has them under the inputs' names.

    Raises:
        InvalidModelError: it cannot be read.
    """
    try:
        with np.load(path) as file:
            return dict(file)
    except (OSError, ValueError, TypeError) as error:
        raise InvalidModelError(f"cannot be read as .npz: {error}", path) from error
