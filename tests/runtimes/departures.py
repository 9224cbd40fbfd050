"""Where a runtime gives something else after rewriting, and why that is right (docs/runtimes.md). An entry that nothing needs
fails the test."""

import dataclasses
import re


@dataclasses.dataclass(frozen=True)
class Departure:
    model: str     # regular expression for the whole name
    targets: str
    runtimes: str
    what: str      # regular expression for the begin of the finding
    reason: str    # with the runtime's version
    is_random: bool = False  # not in every run


DEPARTURES = [
    Departure("attention_node/mask_of_one_key_opset_23", "portable|spec", "reference", "'y' ",
              "ONNX's reference 1.23.2 pads a mask of one key with -inf at opset 23 too; the operator's body of 23 broadcasts it"),
    Departure("onnx_attention/causal_from_the_first_key_and_padding|softmax_attention/(padding_under_triangle_of_not|causal_(and_padding_(infinite|where)|and_slopes|added_to_modest_fill|"
              "or_padding_dropped))|(gpt2|llama)-past-ts17s", "spec", "reference", "",
              "ONNX's reference 1.23.2 makes the triangle of is_causal of the mask's rows: of one row for all queries where the mask has "
              "one; the operator's body and OpenVINO 2026.4.1 make it of queries and keys"),
    Departure("opset/(batch_normalization_9|hardmax_.*|layer_normalization_wider_scale|log_softmax_.*|softmax_.*)", "portable|spec",
              "reference", "'z' ", "ONNX's reference 1.23.2 runs old versions of these operators as the newest one: the model before is "
              "wrong there, the model after is not"),
    Departure("softmax_attention/(flattened_softmax_in_front_of_keys|keys_of_two_axes_flattened)",
              "portable|spec|openvino", "openvino|reference", "'y' ",
              "ONNX's reference 1.23.2 and OpenVINO 2026.4.1 run Softmax of opset 11 along one axis: the model before is wrong there, the "
              "model after is not"),
    Departure("softmax_attention/negative_weights_normalised", "portable|spec", "reference", "'y' ",
              "ONNX's reference 1.23.2 divides by the sum of what is below 0 in LpNormalization, not by that of absolute values: the "
              "model before is wrong"),
    Departure("softmax_attention/scale_of_a_number_taken_backwards", "portable|spec", "reference", "'y' ",
              "ONNX's reference 1.23.2 slices as NumPy does, which takes nothing where a Slice goes back from in front of the first "
              "element; the operator's text bounds the start to it: the model before is wrong, the model after is not"),
    Departure("contrib/gqa_(total_copied|window_softcap_f16)", "portable|ort|cuda", "onnxruntime.*", "'y' ",
              "ONNX Runtime 1.32.0 writes anything into the rows of queries behind the length of a batch element"),
    Departure("softmax_attention/in_half|producers/masks_added_up_float16", "portable|ort|cuda", "onnxruntime.*", "'y' ",
              "ONNX Runtime 1.32.0 adds float16 in float on the CPU: scores survive in a row of the lowest number, which float16 loses"),
    Departure("contrib/gqa_attention_bias", "portable|openvino", "openvino", "'(y|present_key|present_value)' shape ",
              "OpenVINO 2026.4.1 gives empty outputs of the com.microsoft operator in the model before"),
    Departure("opset/dropout.*", "portable|openvino", "openvino", "'z' ",
              "OpenVINO 2026.4.1 leaves an element of an output that is a copy of an input unwritten in some runs, before as after",
              is_random=True),
    Departure("yobx/stage_.*", "portable", "openvino", "does not run: -- No conversion rule found",
              "OpenVINO 2026.4.1 takes no local functions, which --stage functions asks for"),
    Departure("producers/tf_output_without_shape|contrib/mha_past_by_heads", "portable|ort-contrib|directml", "checker",
              "output '(y|present_key|present_value)' is declared otherwise",
              "an output without a shape, which ONNX's checker refuses, gets one"),
    Departure("softmax_attention/output_without_type", "portable|ort-contrib|directml", "checker", "output 'y' is declared otherwise",
              "an output without a type, which ONNX's checker refuses, gets the inferred one"),
    Departure("softmax_attention/(batch_joined_to_itself|einsum_without_arrow)", "ort-contrib|directml", "checker", "'y': size ",
              "ONNX 1.23.2 infers nothing behind an operator of com.microsoft: an output keeps the name that the model declares for a "
              "size that was inferred before"),
    Departure("rules/acme_.*", "portable", "any", "runs nowhere", "operators of a domain that no runtime has"),
    Departure("MultiHeadAttention_07", "portable|openvino", "openvino", "'output' ",
              "open: OpenVINO 2026.4.1 gives another last row where ONNX Runtime 1.32.0 gives that of the model before"),
]

"""Of run.py --infinities."""
OF_INFINITIES = [
    Departure("softmax_attention/einsum_bilinear_scores", "portable", "onnxruntime|reference", "'y' NaN where there was none",
              "an Einsum of three operands has no order in which it multiplies: what 0 times Inf is depends on the runtime"),
    Departure("softmax_attention/heads_resized(_linearly)?", "portable", "reference", "'y' other infinities",
              "ONNX's reference 1.23.2 interpolates by products with 0, which are NaN of Inf, and rounds the largest numbers to Inf"),
    Departure("attention_node/mask_of_one_key_opset_23|producers/masks_added_up_float16|"
              "softmax_attention/(flattened_softmax_in_front_of_keys|keys_of_two_axes_flattened|scale_of_a_number_taken_backwards)",
              "portable", "onnxruntime|reference",
              "'y' ", "as without infinities"),
]


class Table:
    def __init__(self, departures):
        self.departures, self.used = departures, set()

    def explains(self, finding):
        """Whether an entry says that FINDING (judge.Finding) is as it should be."""
        for i, entry in enumerate(self.departures):
            if (re.fullmatch(entry.model, finding.model) and re.fullmatch(entry.targets, finding.target)
                    and re.fullmatch(entry.runtimes, finding.runtime) and re.match(entry.what, finding.what)):
                self.used.add(i)
                return True
        return False

    def unused(self):
        return [entry for i, entry in enumerate(self.departures) if i not in self.used and not entry.is_random]
