"""Sizes of symbolic axes: those that the user gives, sums of others, and defaults that names suggest."""

from __future__ import annotations

import itertools
import re
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence

import numpy as np

from .._errors import UsageError
from ._declared import Axis, Declared

_BY_NAME = ((r"batch|beam|num_images|num_image", 1), (r"channel", 3), (r"height|width|image|pixel", 224),
            (r"heads?\b", 8), (r"", 128))
LONGEST = (128, 32, 8)  # what 128 is tried as, since tables of positions may be shorter
_SUM = re.compile(r"[\w.:\[\]]+(?:\s*[+*-]\s*[\w.:\[\]]+)+$")


def _names(inputs: Sequence[Declared]) -> List[str]:
    return list(dict.fromkeys(axis for one in inputs for axis in one.shape if isinstance(axis, str)))


def given_sizes(texts: Iterable[str]) -> Dict[str, List[int]]:
    """["past=128,2000"] as {"past": [128, 2000]}.

    Raises:
        UsageError: what is no NAME=SIZE, or a size below 1.
    """
    sizes: Dict[str, List[int]] = {}
    for text in texts:
        name, _, values = text.rpartition("=")
        if not name or not re.fullmatch(r"[1-9]\d*(,[1-9]\d*)*", values):
            raise UsageError(f"'{text}' is not NAME=SIZE or NAME=SIZE,SIZE,... with sizes from 1", "--dim")
        sizes[name] = [int(value) for value in values.split(",")]
    return sizes


def combinations(sizes: Mapping[str, Sequence[int]]) -> Iterator[Dict[str, int]]:
    """Every choice of one size for each name."""
    for chosen in itertools.product(*sizes.values()):
        yield dict(zip(sizes, chosen))


def _by_name(name: str, longest: int) -> int:
    if re.search(r":0$", name):  # an axis without a name
        return 1
    size = next(size for words, size in _BY_NAME if re.search(words, name, re.IGNORECASE))
    return min(size, longest) if size == LONGEST[0] else size


def _evaluated(expression: str, sizes: Mapping[str, int]) -> Optional[int]:
    """"past + seq" where both sizes are known; from left to right, without precedence but that of *."""
    total = 0
    for sign, term in re.findall(r"(^|[+-])([^+-]+)", expression.replace(" ", "")):
        product = 1
        for factor in term.split("*"):
            size = int(factor) if factor.isdigit() else sizes.get(factor)
            if size is None:
                return None
            product *= size
        total += -product if sign == "-" else product
    return total


def past_axis(inputs: Sequence[Declared]) -> Optional[str]:
    """The axis that is the length of a decoder's cache: one that is called so, or axis 2 of an input of rank 4 that is."""
    called = (name for name in _names(inputs) if "past" in name.lower() and not _SUM.match(name) and ":" not in name)
    caches = (one.shape[2] for one in inputs if len(one.shape) == 4 and re.search(r"^(?!.*(cross|\bencoder)).*(past|cache)", one.name))
    return next(called, None) or next((axis for axis in caches if isinstance(axis, str)), None)


def new_tokens(inputs: Sequence[Declared]) -> Optional[Axis]:
    """The axis of the tokens that a decoder reads: the second one of its ids."""
    readers = (one for one in inputs if re.search(r"input_ids|inputs_embeds|tokens", one.name) and len(one.shape) > 1)
    return next((one.shape[1] for one in readers), None)


def _is_total(name: str, inputs: Sequence[Declared]) -> bool:
    """NAME is the length of past and new tokens together: masks alone have it, or it says so."""
    if "total" in name.lower():
        return True
    readers = [one for one in inputs if name in one.shape]
    return all("mask" in one.name and name == one.shape[-1] for one in readers)


def _unknown(given: Iterable[str], names: Sequence[str]) -> None:
    for name in given:
        if name not in names:
            there = f"there are {', '.join(names)}" if names else "its inputs have fixed sizes"
            raise UsageError(f"no input has an axis '{name}'", "--dim", there)


def sizes_of_arrays(inputs: Sequence[Declared], arrays: Mapping[str, Any], given: Mapping[str, int]) -> Dict[str, int]:
    """GIVEN, and the sizes that ARRAYS, by input, have along axes with names.

    Raises:
        UsageError: an array has another size than GIVEN, or than another array.
    """
    sizes = dict(given)
    for one in inputs:
        shape = np.shape(arrays[one.name]) if one.name in arrays else ()
        for axis, size in zip(one.shape, shape) if len(shape) == len(one.shape) else ():
            if isinstance(axis, str) and not _SUM.match(axis) and size > 0 and sizes.setdefault(axis, size) != size:
                raise UsageError(f"'{one.name}' has {size} along '{axis}', which is {sizes[axis]} elsewhere", "--inputs")
    return sizes


def sizes_of(inputs: Sequence[Declared], given: Mapping[str, int], longest: int = LONGEST[0]) -> Dict[str, int]:
    """A size for each name of an axis in INPUTS.

    What GIVEN does not have is, in this order: the sum that its name spells ("past + seq"); past and new tokens together, if masks
    alone have it or it is called total; 1 for a batch, and for the new tokens of a model with a cache; 3 channels; 224 for height and
    width; LONGEST.

    Raises:
        UsageError: GIVEN has a name that no input has.
    """
    names = _names(inputs)
    _unknown(given, names)
    sizes = {name: given.get(name, 0) or _by_name(name, longest) for name in names if name in given or not _SUM.match(name)}
    past, new = past_axis(inputs), new_tokens(inputs)
    if past is not None and new is not None:
        if isinstance(new, str) and new not in given:
            sizes[new] = 1
        together = sizes[past] + (sizes[new] if isinstance(new, str) else new)
        sizes.update({name: together for name in sizes if name not in (*given, past, new) and _is_total(name, inputs)})
    for name in names:
        if name not in sizes:
            sizes[name] = _evaluated(name, sizes) or _by_name(name, longest)
    return {name: sizes[name] for name in names}
