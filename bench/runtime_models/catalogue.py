"""The models and sizes that bench/runtime_effect measures."""

from dataclasses import dataclass, field
from functools import partial
from typing import Callable, Dict, Tuple

from .decoders import gpt2, llama
from .encoders import bert, diffusion_block, vit, whisper


@dataclass(frozen=True)
class Entry:
    """A model: its name, what writes it to a path, sizes to measure, and what ONNX Runtime's optimizer calls it (kind, heads, width).

    BOUNDED: it is measured without attention, too. Only where K and V are outputs is the rest then still computed.
    """

    name: str
    write: Callable[..., None]
    sizes: Tuple[Dict[str, int], ...]
    kind: Tuple[str, int, int] = field(default=("", 0, 0))
    bounded: bool = False


_PREFILL = tuple({"batch": 1, "seq": seq} for seq in (128, 512))
_DECODE = tuple({"batch": batch, "seq": 1, "past": past} for batch, past in ((1, 128), (1, 2000), (4, 1000)))

_LENGTHS = ({"batch": 1, "seq": 128}, {"batch": 1, "seq": 512}, {"batch": 8, "seq": 128})

ENTRIES = (
    Entry("Stable Diffusion block, eager", diffusion_block, ({"batch": 1},), ("unet", 8, 320)),
    Entry("Stable Diffusion block, sdpa", partial(diffusion_block, spelling="sdpa"), ({"batch": 1},), ("unet", 8, 320)),
    Entry("GPT-2 decode, eager", partial(gpt2, with_past=True), _DECODE, ("gpt2", 12, 768), bounded=True),
    Entry("Llama decode, sdpa", partial(llama, with_past=True, spelling="sdpa"), _DECODE, bounded=True),
    Entry("BERT-base, eager", bert, _LENGTHS, ("bert", 12, 768)),
    Entry("BERT-base, sdpa", partial(bert, spelling="sdpa"), _LENGTHS, ("bert", 12, 768)),
    Entry("ViT-B/16, sdpa", partial(vit, spelling="sdpa"), ({"batch": 1}, {"batch": 4}), ("vit", 12, 768)),
    Entry("Whisper-base encoder, sdpa", partial(whisper, spelling="sdpa"), ({"batch": 1},), ("bart", 8, 512)),
    Entry("GPT-2 prefill, eager", partial(gpt2, with_past=False), _PREFILL, ("gpt2", 12, 768)),
    Entry("Llama prefill, sdpa", partial(llama, with_past=False, spelling="sdpa"), _PREFILL),
)
