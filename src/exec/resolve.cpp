#include "src/exec/resolve.h"

#include <map>

#include "src/io/check/runtime_operators.h"

namespace attn_opt {
namespace {

bool is_control_flow(const std::string& op_type) { return op_type == "If" || op_type == "Loop" || op_type == "Scan"; }

bool prefers_body(const onnx::OpSchema& schema, int opset, SchemaBodies bodies) {
  const auto is_in_time = [&](int version) { return version <= opset; };
  if (std::ranges::none_of(schema.function_opset_versions(), is_in_time) &&
      std::ranges::none_of(schema.context_dependent_function_opset_versions(), is_in_time)) {
    return false;
  }
  return bodies == SchemaBodies::kAlways || (bodies == SchemaBodies::kAttention && schema.Name() == "Attention");
}

ResolvedOp look_up(const std::string& name, const std::string& op_type, const std::string& domain, int opset,
                   SchemaBodies bodies) {
  ResolvedOp op;
  op.schema = find_schema(op_type, opset, domain);
  op.version = op.schema != nullptr ? op.schema->since_version() : opset;
  if (op.schema == nullptr) {
    if (!domain.empty()) op.kernel = kernel_registry().find(name, op.version);
    if (op.kernel != nullptr) op.implementation = Implementation::kKernel;
    return op;
  }
  for (const auto& input : op.schema->inputs()) {
    if (input.GetOption() == onnx::OpSchema::Single) ++op.required_inputs;
    if (input.GetOption() == onnx::OpSchema::Optional) break;
    if (input.GetOption() == onnx::OpSchema::Variadic) op.variadic = true;
  }
  if (domain.empty() && is_control_flow(op_type)) {
    op.implementation = Implementation::kControlFlow;
    op.variadic = false;
  } else if (!prefers_body(*op.schema, opset, bodies) && (op.kernel = kernel_registry().find(name, op.version)) != nullptr) {
    op.implementation = Implementation::kKernel;
  } else if (op.schema->HasFunction() || op.schema->HasContextDependentFunction()) {
    op.implementation = Implementation::kSchemaFunction;
  }
  return op;
}

}  // namespace

const std::string& canonical_domain(const std::string& domain) {
  static const std::string kOnnx;
  return domain == "ai.onnx" ? kOnnx : domain;
}

int opset_of(const Opsets& opsets, const std::string& domain) {
  const auto found = opsets.find(canonical_domain(domain));
  return found != opsets.end() ? found->second : 0;
}

const ResolvedOp& resolve(const onnx::NodeProto& node, const Opsets& opsets, SchemaBodies bodies) {
  using Versions = std::vector<std::pair<int, ResolvedOp>>;
  static const ResolvedOp kUnknown;
  thread_local std::map<SchemaBodies, std::unordered_map<std::string, Versions>> known;
  const std::string& domain = canonical_domain(node.domain());
  const int opset = opset_of(opsets, domain);
  if (opset == 0) return kUnknown;
  const std::string name = qualified_name(domain, node.op_type());
  auto& versions = known[bodies][name];
  for (const auto& [version, op] : versions) {
    if (version == opset) return op;
  }
  constexpr size_t kMostVersions = 64;
  if (versions.size() >= kMostVersions) versions.clear();
  versions.reserve(kMostVersions);  // references stay valid
  return versions.emplace_back(opset, look_up(name, node.op_type(), domain, opset, bodies)).second;
}

tl::unexpected<Error> unsupported_op(const onnx::NodeProto& node, const Opsets& opsets) {
  const std::string& domain = canonical_domain(node.domain());
  const std::string where = describe(node);
  return fail(ErrorCode::kUnsupported, where,
              "unsupported: " + (domain.empty() ? "ai.onnx" : domain) + "::" + node.op_type() + " (opset " +
                  std::to_string(opset_of(opsets, domain)) + ")");
}

}  // namespace attn_opt
