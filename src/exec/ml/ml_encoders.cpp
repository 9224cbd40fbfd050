// Operators of ai.onnx.ml that look elements up: LabelEncoder, CategoryMapper, OneHotEncoder.
#include <map>
#include <numeric>

#include "src/exec/families.h"
#include "src/exec/layout/copy.h"
#include "src/exec/layout/order.h"

namespace attn_opt {
namespace {

using LabelTypes = TypeList<float, double, int16_t, int32_t, int64_t, std::string>;

struct ByOrder {
  template <class T>
  bool operator()(const T& a, const T& b) const {
    return order(a, b) < 0;
  }
};

/// Where in KEYS each element of X stands, the last place if there are several; -1: nowhere.
Expected<std::vector<int64_t>> places(const KernelContext& context, const Tensor& x, Tensor keys) {
  if (x.type() == onnx::TensorProto::DOUBLE && keys.type() == onnx::TensorProto::FLOAT) {
    ATTN_OPT_TRY(keys, keys.cast(x.type()));  // the model's floats are computed in double
  }
  ATTN_OPT_CHECK(context.same_type(x, keys));
  ATTN_OPT_CHECK(context.within_budget(x.size(), sizeof(int64_t)));
  using Places = Expected<std::vector<int64_t>>;
  return dispatch(context, x.type(), LabelTypes{}, [&]<class T>() -> Places {
    std::map<T, int64_t, ByOrder> known;
    for (const T& key : keys.data<T>()) known[key] = &key - keys.data<T>().data();
    std::vector<int64_t> found;
    for (const T& element : x.data<T>()) {
      const auto entry = known.find(element);
      found.push_back(entry != known.end() ? entry->second : -1);
    }
    return found;
  });
}

/// VALUES, a vector, where X's elements stand in KEYS, and OTHERWISE elsewhere.
Outputs look_up(const KernelContext& context, const Tensor& keys, const Tensor& values, const Tensor& otherwise) {
  const Tensor& x = context.input(0);
  if (keys.rank() != 1 || keys.dims() != values.dims()) return context.invalid("keys and values differ in number");
  if (otherwise.size() != 1) return context.invalid("the default is not one value");
  ATTN_OPT_TRY(auto indices, places(context, x, keys));
  const std::array parts{values, otherwise.reshaped({1})};
  ATTN_OPT_TRY(const Tensor choices, concatenated(context, parts, 0));
  for (int64_t& index : indices) index = index < 0 ? values.size() : index;
  ATTN_OPT_TRY(const Tensor found, slices_at(context, choices, 0, indices));
  return single(found.reshaped(x.dims()));
}

template <class T>
Tensor vector_of(const std::vector<T>& values) {
  return Tensor::of<T>({static_cast<int64_t>(values.size())}, values);
}

/// Attribute PREFIX_floats, _int64s, _strings or _tensor, whichever is there; it may lack its value.
Expected<Tensor> list(const KernelContext& context, const std::string& prefix) {
  const auto has = [&](const char* suffix) { return context.attribute(prefix + suffix) != nullptr; };
  if (has("_floats")) return vector_of(context.attribute_floats(prefix + "_floats"));
  if (has("_int64s")) return vector_of(context.attribute_ints(prefix + "_int64s"));
  if (has("_strings")) return vector_of(context.attribute_strings(prefix + "_strings"));
  if (has("_tensor")) return to_tensor(context.attribute(prefix + "_tensor")->t(), context.tensors);
  return context.invalid("attributes " + prefix + "_* are missing");
}

/// Of elements of TYPE that are not found.
Expected<Tensor> default_of(const KernelContext& context, DataType type) {
  if (const auto* given = context.attribute("default_tensor"); given != nullptr) {
    return to_tensor(given->t(), context.tensors);
  }
  if (type == onnx::TensorProto::STRING) {
    return Tensor::scalar(context.attribute_string("default_string", "_Unused"));
  }
  if (is_floating(type)) return Tensor::scalar(context.attribute_float("default_float", -0.0f)).cast(type);
  return Tensor::scalar(context.attribute_int("default_int64", -1)).cast(type);
}

Outputs label_encoder(const KernelContext& context) {
  ATTN_OPT_TRY(const Tensor keys, list(context, "keys"));
  ATTN_OPT_TRY(const Tensor values, list(context, "values"));
  ATTN_OPT_TRY(const Tensor otherwise, default_of(context, values.type()));
  return look_up(context, keys, values, otherwise);
}

/// Strings to NUMBERS, or numbers to STRINGS, as the input asks.
Outputs map_categories(const KernelContext& context, const Tensor& strings, const Tensor& numbers) {
  const bool reads_strings = context.input(0).type() == onnx::TensorProto::STRING;
  const Tensor& values = reads_strings ? numbers : strings;
  ATTN_OPT_TRY(const Tensor otherwise, default_of(context, values.type()));
  return look_up(context, reads_strings ? strings : numbers, values, otherwise);
}

Outputs label_encoder_of_classes(const KernelContext& context) {
  const auto classes = context.attribute_strings("classes_strings");
  std::vector<int64_t> indices(classes.size());
  std::iota(indices.begin(), indices.end(), 0);
  return map_categories(context, vector_of(classes), vector_of(indices));
}

Outputs category_mapper(const KernelContext& context) {
  return map_categories(context, vector_of(context.attribute_strings("cats_strings")),
                        vector_of(context.attribute_ints("cats_int64s")));
}

Outputs one_hot_encoder(const KernelContext& context) {
  Tensor x = context.input(0);
  if (x.type() != onnx::TensorProto::STRING) {
    ATTN_OPT_TRY(x, x.cast(onnx::TensorProto::INT64));
  }
  const Tensor categories = x.type() == onnx::TensorProto::STRING ? vector_of(context.attribute_strings("cats_strings"))
                                                                  : vector_of(context.attribute_ints("cats_int64s"));
  ATTN_OPT_TRY(const auto indices, places(context, x, categories));
  Dims dims = x.dims();
  dims.push_back(categories.size());
  ATTN_OPT_TRY(Tensor out, context.allocate(onnx::TensorProto::FLOAT, std::move(dims)));
  const bool may_miss = context.attribute_int("zeros", 1) != 0;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] >= 0)
      out.mutable_data<float>()[i * static_cast<size_t>(categories.size()) + static_cast<size_t>(indices[i])] = 1;
    else if (!may_miss)
      return context.invalid("an element is of no category");
  }
  return single(std::move(out));
}

}  // namespace

void register_ml_encoders(KernelRegistry& registry) {
  registry.add("ai.onnx.ml::LabelEncoder", 1, 1, label_encoder_of_classes);
  registry.add("ai.onnx.ml::LabelEncoder", 2, 4, label_encoder);
  registry.add("ai.onnx.ml::CategoryMapper", 1, 1, category_mapper);
  registry.add("ai.onnx.ml::OneHotEncoder", 1, 1, one_hot_encoder);
}

}  // namespace attn_opt
