"""Makes the models of this folder: random weights in the shapes of the real ones, exported by PyTorch's exporters.

    python make.py        needs torch, onnx, onnxscript, transformers (made with torch 2.13 and transformers 5.23)
"""

import argparse
import hashlib
import linecache
import pathlib
import re

import onnx
import torch
from torch import nn
from torch.nn import functional

HERE = pathlib.Path(__file__).resolve().parent


class CrossAttention(nn.Module):
    """As the U-Net of Stable Diffusion has it: queries from the image, keys and values from the image or the text."""

    def __init__(self, width, context, heads):
        super().__init__()
        self.heads = heads
        self.to_q, self.to_k, self.to_v = (nn.Linear(size, width, bias=False) for size in (width, context, context))
        self.to_out = nn.Linear(width, width)

    def forward(self, x, context):
        batch, tokens, width = x.shape
        split = lambda y: y.reshape(batch, y.shape[1], self.heads, -1).permute(0, 2, 1, 3).reshape(batch * self.heads, y.shape[1], -1)
        q, k, v = split(self.to_q(x)), split(self.to_k(context)), split(self.to_v(context))
        p = torch.softmax(torch.einsum("bid,bjd->bij", q, k) * q.shape[-1] ** -0.5, dim=-1)
        y = torch.einsum("bij,bjd->bid", p, v)
        y = y.reshape(batch, self.heads, tokens, -1).permute(0, 2, 1, 3).reshape(batch, tokens, width)
        return self.to_out(y)


class TransformerBlock(nn.Module):
    """Self-attention, attention to the text, and a gated feed-forward layer over the pixels of a feature map."""

    def __init__(self, width=32, context=24, heads=4):
        super().__init__()
        self.attn1, self.attn2 = CrossAttention(width, width, heads), CrossAttention(width, context, heads)
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(width) for _ in range(3))
        self.proj, self.out = nn.Linear(width, 8 * width), nn.Linear(4 * width, width)

    def forward(self, sample, text):
        batch, width, height, columns = sample.shape
        x = sample.permute(0, 2, 3, 1).reshape(batch, height * columns, width)
        n = self.norm1(x)
        x = x + self.attn1(n, n)
        x = x + self.attn2(self.norm2(x), text)
        value, gate = self.proj(self.norm3(x)).chunk(2, dim=-1)
        x = x + self.out(value * functional.gelu(gate))
        return sample + x.reshape(batch, height, columns, width).permute(0, 3, 1, 2)


def stable_diffusion_block():
    torch.onnx.export(TransformerBlock().eval(), (torch.randn(2, 32, 4, 6), torch.randn(2, 7, 24)), HERE / "stable-diffusion-block.onnx",
                      input_names=["sample", "text"], output_names=["y"], opset_version=17, dynamo=False,
                      dynamic_axes={"sample": {0: "batch", 2: "height", 3: "width"}, "text": {0: "batch", 1: "words"}})


def whisper_decoder():
    from transformers import WhisperConfig, WhisperModel  # pylint: disable=import-outside-toplevel

    config = WhisperConfig(vocab_size=64, d_model=32, decoder_layers=2, encoder_layers=1, decoder_attention_heads=4,
                           encoder_attention_heads=4, decoder_ffn_dim=64, encoder_ffn_dim=64, max_target_positions=32,
                           num_mel_bins=8, max_source_positions=30, pad_token_id=0, bos_token_id=1, eos_token_id=2,
                           decoder_start_token_id=1, attn_implementation="eager", use_cache=False)
    decoder = WhisperModel(config).decoder.eval()

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.decoder = decoder

        def forward(self, tokens, audio):
            return self.decoder(input_ids=tokens, encoder_hidden_states=audio, use_cache=False).last_hidden_state

    batch, words, frames = (torch.export.Dim(name, min=1, max=largest) for name, largest in (("batch", 64), ("words", 32), ("frames", 30)))
    program = torch.onnx.export(Decoder().eval(), (torch.randint(0, 64, (3, 5)), torch.randn(3, 9, 32)), dynamo=True, opset_version=18,
                                input_names=["tokens", "audio"], output_names=["y"],
                                dynamic_shapes={"tokens": {0: batch, 1: words}, "audio": {0: batch, 1: frames}})
    onnx.save(program.model_proto, HERE / "whisper-decoder.onnx")
    keep_metadata(HERE / "whisper-decoder.onnx")


def page_block():
    """The first block of Python in docs/getting_started.md."""
    return re.search(r"```python\n(.*?)```", (HERE.parent.parent / "docs/getting_started.md").read_text(), re.S)[1]


def encoder():
    """What the page exports; it says of which text it was made, so that a test can tell."""
    block = page_block().replace('"encoder.onnx"', f'"{HERE / "encoder.onnx"}"')
    linecache.cache["export.py"] = (len(block), None, block.splitlines(True), "export.py")  # where stack traces find the lines
    exec(compile(block, "export.py", "exec"), {"__name__": "export"})  # pylint: disable=exec-used
    keep_metadata(HERE / "encoder.onnx", r'File "export[.]py".*')
    model = onnx.load(HERE / "encoder.onnx")
    onnx.helper.set_model_props(model, {"made_of": hashlib.sha256(page_block().encode()).hexdigest()})
    onnx.save(model, HERE / "encoder.onnx")


def keep_metadata(path, frames=None):
    """Leaves nodes their modules, and of stack traces the lines that match FRAMES: others name files of the machine that exported."""
    model = onnx.load(path)
    for node in model.graph.node:
        metadata = {entry.key.removeprefix("pkg.torch.onnx."): entry.value for entry in node.metadata_props}
        del node.metadata_props[:]
        trace = "\n".join(re.findall(frames, metadata.get("stack_trace", ""))) if frames else ""
        for key, value in (("name_scopes", metadata.get("name_scopes")), ("stack_trace", trace)):
            if value:
                node.metadata_props.add(key=f"pkg.torch.onnx.{key}", value=value)
    onnx.save(model, path)


def main():
    """Takes no option but --help, which must not write models."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    torch.manual_seed(0)
    encoder()
    stable_diffusion_block()
    whisper_decoder()


if __name__ == "__main__":
    main()
