#include <algorithm>
#include <map>
#include <set>

#include "attn_opt/tensor.h"
#include "src/cli/cases/case_shrinking.h"

namespace attn_opt {
namespace {

constexpr int64_t kSmall = 4;

using NewSizes = std::map<int64_t, int64_t>;

/// Changes every size in MODEL with CHANGE: those that values are declared with and the numbers in int64 constants.
template <class Change>
void for_each_size(onnx::ModelProto& model, Change change) {
  onnx::GraphProto& graph = *model.mutable_graph();
  const auto in_tensor = [&change](onnx::TensorProto& tensor) {
    if (tensor.data_type() != onnx::TensorProto::INT64) return;
    const auto data = to_tensor(tensor, inline_tensors());
    if (!data) return;
    std::vector<int64_t> numbers(data->data<int64_t>().begin(), data->data<int64_t>().end());
    for (int64_t& number : numbers) change(number);
    tensor = to_proto(Tensor::of<int64_t>(data->dims(), numbers), tensor.name());
  };
  for (auto* infos : {graph.mutable_input(), graph.mutable_output(), graph.mutable_value_info()})
    for (auto& info : *infos)
      if (info.type().has_tensor_type() && info.type().tensor_type().has_shape())
        for (auto& dim : *info.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim())
          if (dim.has_dim_value()) {
            int64_t size = dim.dim_value();
            change(size);
            dim.set_dim_value(size);
          }
  for (auto& tensor : *graph.mutable_initializer()) in_tensor(tensor);
  for (auto& node : *graph.mutable_node())
    for (auto& attribute : *node.mutable_attribute())
      if (attribute.has_t()) in_tensor(*attribute.mutable_t());
}

/// The sizes of MODEL that are not small as they are.
std::set<int64_t> large_sizes(onnx::ModelProto model) {
  std::set<int64_t> sizes;
  constexpr int64_t kNoSize = int64_t{1} << 31;
  for_each_size(model, [&sizes](int64_t& size) {
    if (size > kSmall && size < kNoSize) sizes.insert(size);
  });
  return sizes;
}

/// The two sizes whose product SIZE is; {0, 0} if there are none.
std::pair<int64_t, int64_t> factors_of(int64_t size, const std::set<int64_t>& sizes) {
  for (const int64_t one : sizes) {
    const int64_t other = size / one;
    const bool is_factor = other >= 2 && other <= one && one * other == size;
    if (is_factor && (other <= kSmall || sizes.contains(other))) return {one, other};
  }
  return {0, 0};
}

/// SMALLER for every size: products become products.
NewSizes with_products(const std::set<int64_t>& sizes, const NewSizes& smaller) {
  NewSizes all;
  for (const int64_t size : sizes) {
    const auto value = [&all](int64_t factor) { return all.contains(factor) ? all[factor] : factor; };
    const auto [one, other] = factors_of(size, sizes);
    const auto chosen = smaller.find(size);
    all[size] = one > 0 ? value(one) * value(other) : chosen == smaller.end() ? size : chosen->second;
  }
  return all;
}

bool try_sizes(CaseModel& model, const CaseTest& holds, const NewSizes& smaller) {
  const NewSizes all = with_products(large_sizes(model.proto), smaller);
  onnx::ModelProto changed = model.proto;
  for_each_size(changed, [&all](int64_t& size) {
    if (const auto found = all.find(size); found != all.end()) size = found->second;
  });
  if (!holds(changed)) return false;
  model.proto.Swap(&changed);
  return true;
}

}  // namespace

void shrink_sizes(CaseModel& model, const CaseTest& holds) {
  const std::set<int64_t> sizes = large_sizes(model.proto);
  std::vector<int64_t> prime;
  for (const int64_t size : sizes)
    if (factors_of(size, sizes).first == 0) prime.push_back(size);
  NewSizes together;
  constexpr int64_t kReplacements[] = {4, 3, 5, 2, 6, 7};
  for (size_t i = 0; i < prime.size(); ++i)
    if (i < std::size(kReplacements) && kReplacements[i] < prime[i]) together[prime[i]] = kReplacements[i];
  if (!together.empty() && try_sizes(model, holds, together)) return;
  for (const int64_t size : prime) {
    if (holds.is_over()) return;
    for (const int64_t replacement : kReplacements)
      if (replacement < size && try_sizes(model, holds, {{size, replacement}})) break;
  }
}

}  // namespace attn_opt
