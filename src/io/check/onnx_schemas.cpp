#include "src/io/check/onnx_schemas.h"

#include <onnx/defs/operator_sets.h>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <string_view>

namespace attn_opt {
namespace {

/// One version of an operator.
struct Version {
  std::string_view op;
  int since;
  onnx::OpSchema (*make)();
};

bool comes_before(const Version& one, const Version& other) {
  return one.op != other.op ? one.op < other.op : one.since < other.since;
}

class OnnxSchemas : public onnx::ISchemaRegistry {
 public:
  OnnxSchemas() { std::ranges::sort(versions_, comes_before); }

  // NOLINTNEXTLINE(google-default-arguments): as the base has it.
  const onnx::OpSchema* GetSchema(const std::string& op, int opset, const std::string& domain = "") const override {
    if (!domain.empty()) return onnx::OpSchemaRegistry::Schema(op, opset, domain);
    const auto newer = std::ranges::upper_bound(versions_, Version{op, opset, nullptr}, comes_before);
    if (newer == versions_.begin() || std::prev(newer)->op != op) return nullptr;
    return &made(static_cast<size_t>(std::prev(newer) - versions_.begin()));
  }

 private:
  struct Made {
    std::once_flag once;
    std::unique_ptr<const onnx::OpSchema> schema;
  };

  const onnx::OpSchema& made(size_t at) const {
    Made& place = made_[at];
    std::call_once(place.once, [&] {
      auto schema = std::make_unique<onnx::OpSchema>(versions_[at].make());
      schema->Finalize();
      place.schema = std::move(schema);
    });
    return *place.schema;
  }

#define ATTN_OPT_SCHEMA(version, op) \
  Version{#op, version, onnx::GetOpSchema<onnx::ONNX_OPERATOR_SET_SCHEMA_CLASS_NAME(Onnx, version, op)>},
  std::array<Version, ATTN_OPT_SCHEMAS> versions_ = {
#include "onnx_schemas.inc"
  };
#undef ATTN_OPT_SCHEMA
  mutable std::array<Made, ATTN_OPT_SCHEMAS> made_;
};

}  // namespace

const onnx::ISchemaRegistry& onnx_schemas() {
  static const OnnxSchemas schemas;
  return schemas;
}

}  // namespace attn_opt
