#include "src/exec/layout/sparse.h"

#include <cstring>

#include "src/exec/layout/strided.h"

namespace attn_opt {
namespace {

/// Where each value lies in a dense tensor of DIMS: INDICES holds its place there, or one index for each
/// axis.
Expected<std::vector<int64_t>> places_of(const Tensor& indices, const Dims& dims, int64_t values) {
  const auto rank = static_cast<int64_t>(dims.size());
  const bool per_axis = indices.rank() == 2;
  const Dims wanted = per_axis ? Dims{values, rank} : Dims{values};
  if (indices.type() != onnx::TensorProto::INT64 || indices.dims() != wanted) {
    return fail(ErrorCode::kInvalidInput, "", "sparse tensor: indices are not those of the values");
  }
  const Dims extents = per_axis ? dims : Dims{element_count(dims)};
  const Dims strides = strides_of(extents);
  std::vector<int64_t> places(static_cast<size_t>(values), 0);
  size_t read = 0;
  for (int64_t& place : places) {
    for (size_t axis = 0; axis < extents.size(); ++axis) {
      const int64_t index = indices.data<int64_t>()[read++];
      if (index < 0 || index >= extents[axis]) {
        return fail(ErrorCode::kInvalidInput, "",
                    "sparse tensor: index " + std::to_string(index) + " is out of range for an axis of " +
                        std::to_string(extents[axis]));
      }
      place += index * strides[axis];
    }
  }
  return places;
}

}  // namespace

Expected<Tensor> to_dense(const onnx::SparseTensorProto& sparse, const TensorStore& store, size_t budget) {
  ATTN_OPT_TRY(const Tensor values, to_tensor(sparse.values(), store));
  ATTN_OPT_TRY(const Tensor indices, to_tensor(sparse.indices(), store));
  const Dims dims(sparse.dims().begin(), sparse.dims().end());
  const int64_t count = element_count(dims);
  if (count < 0 || values.rank() != 1) {
    return fail(ErrorCode::kInvalidInput, sparse.values().name(), "sparse tensor: invalid dims");
  }
  const bool is_string = values.type() == onnx::TensorProto::STRING;
  const size_t size = is_string ? sizeof(std::string) : element_size(values.type());
  if (size == 0) return fail(ErrorCode::kUnsupported, sparse.values().name(), "sparse tensor: unsupported type");
  if (static_cast<size_t>(count) > budget / size) {
    return fail(ErrorCode::kLimit, sparse.values().name(), "sparse tensor: made dense it passes the memory limit");
  }
  ATTN_OPT_TRY(const auto places, places_of(indices, dims, values.size()));
  Tensor dense(values.type(), dims);
  for (size_t i = 0; i < places.size(); ++i) {
    const auto place = static_cast<size_t>(places[i]);
    if (is_string)
      dense.mutable_data<std::string>()[place] = values.data<std::string>()[i];
    else
      std::memcpy(dense.mutable_bytes().data() + place * size, values.bytes().data() + i * size, size);
  }
  return dense;
}

}  // namespace attn_opt
