#include "src/io/check/runtime_schemas.h"

#include <initializer_list>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace attn_opt {
namespace {

using onnx::AttributeProto;
using onnx::OpSchema;
using Types = std::vector<std::string>;

/// "X", "B?": the name of an input or output, which may be omitted.
struct Formal {
  Formal(const char* text) : name(text) {  // NOLINT(google-explicit-constructor): lists are of texts
    if (!name.ends_with('?')) return;
    name.pop_back();
    option = OpSchema::Optional;
  }
  std::string name;
  OpSchema::FormalParameterOption option = OpSchema::Single;
};

using Formals = std::initializer_list<Formal>;

Types floating_types() { return {"tensor(float16)", "tensor(float)", "tensor(double)"}; }
Types normalized_types() { return {"tensor(float16)", "tensor(float)", "tensor(double)", "tensor(bfloat16)"}; }

/// An operator since opset 1 whose inputs and outputs are of TYPES, each of its own.
OpSchema schema_of(const char* op, Formals inputs, Formals outputs, const Types& types) {
  OpSchema schema(op, __FILE__, __LINE__);
  schema.SinceVersion(1);
  int i = 0, o = 0;
  const auto type = [&](const Formal& formal) {
    schema.TypeConstraint("T_" + formal.name, types, "");
    return "T_" + formal.name;
  };
  for (const Formal& input : inputs) schema.Input(i++, input.name, "", type(input), input.option);
  for (const Formal& output : outputs) schema.Output(o++, output.name, "", type(output), output.option);
  return schema;
}

OpSchema elementwise(const char* op) { return schema_of(op, {"X"}, {"Y"}, floating_types()); }

OpSchema normalization(const char* op, Formals inputs, Formals outputs) {
  OpSchema schema = schema_of(op, inputs, outputs, normalized_types());
  schema.Attr("axis", "", AttributeProto::INT, int64_t{-1});
  schema.Attr("epsilon", "", AttributeProto::FLOAT, 1e-5f);
  schema.Attr("stash_type", "", AttributeProto::INT, int64_t{onnx::TensorProto::FLOAT});
  return schema;
}

OpSchema tensor_rt_plugin(const char* op, Formals inputs, Formals outputs,
                          std::initializer_list<std::pair<const char*, AttributeProto::AttributeType>> attributes) {
  OpSchema schema = schema_of(op, inputs, outputs, OpSchema::all_tensor_types());
  for (const auto& [name, type] : attributes) schema.Attr(name, "", type, true);
  return schema;
}

std::vector<OpSchema> tensor_rt_plugins() {
  const auto number = AttributeProto::FLOAT;
  const auto integer = AttributeProto::INT;
  const auto text = AttributeProto::STRING;
  return {
      tensor_rt_plugin("EfficientNMS_TRT", {"boxes", "scores", "anchors?"},
                       {"num_detections", "detection_boxes", "detection_scores", "detection_classes"},
                       {{"background_class", integer},
                        {"max_output_boxes", integer},
                        {"plugin_version", text},
                        {"score_activation", integer},
                        {"box_coding", integer},
                        {"score_threshold", number},
                        {"iou_threshold", number}}),
      tensor_rt_plugin("DisentangledAttention_TRT", {"c2c_attention", "c2p_attention", "p2c_attention"},
                       {"disentangled_attention"}, {{"span", integer}, {"factor", number}}),
      tensor_rt_plugin("MultilevelCropAndResize_TRT",
                       {"boxes", "feature_map_0", "feature_map_1", "feature_map_2", "feature_map_3"}, {"patches"},
                       {{"pooled_size", integer}, {"image_size", AttributeProto::INTS}, {"plugin_version", text}}),
      tensor_rt_plugin("PyramidROIAlign_TRT", {"boxes", "feature_map_0", "feature_map_1", "feature_map_2", "feature_map_3"},
                       {"patches"}, {{"pooled_size", integer}, {"plugin_version", text}}),
  };
}

std::vector<OpSchema> others() {
  return {
      normalization("LayerNormalization", {"X", "Scale", "B?"}, {"Y", "Mean?", "InvStdDev?"}),
      normalization("SimplifiedLayerNormalization", {"X", "scale"}, {"Y", "inv_std_var?"}),
      schema_of("MemcpyFromHost", {"X"}, {"Y"}, OpSchema::all_tensor_types()),
      schema_of("MemcpyToHost", {"X"}, {"Y"}, OpSchema::all_tensor_types()),
      elementwise("MeanVarianceNormalization")
          .Attr("across_channels", "", AttributeProto::INT, int64_t{0})
          .Attr("normalize_variance", "", AttributeProto::INT, int64_t{1}),
      elementwise("ThresholdedRelu").Attr("alpha", "", AttributeProto::FLOAT, 1.0f),
  };
}

using Schemas = std::unordered_map<std::string, OpSchema>;

Schemas make_schemas() {
  Schemas all;
  for (std::vector<OpSchema> family : {others(), tensor_rt_plugins()}) {
    for (OpSchema& schema : family) {
      schema.Finalize();
      std::string op = schema.Name();
      all.emplace(std::move(op), std::move(schema));
    }
  }
  return all;
}

}  // namespace

const onnx::OpSchema* runtime_schema(const std::string& op) {
  static const Schemas all = make_schemas();
  const auto found = all.find(op);
  return found == all.end() ? nullptr : &found->second;
}

}  // namespace attn_opt
