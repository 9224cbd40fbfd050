#include "src/exec/plan.h"

namespace attn_opt {
namespace {

constexpr int kDeepestNesting = 64;

class Planner {
 public:
  Planner(const Opsets& opsets, const LocalFunctions& functions, SchemaBodies bodies, Planner* outer)
      : functions_(functions),
        bodies_(bodies),
        outer_(outer),
        depth_(outer != nullptr ? outer->depth_ + 1 : 0),
        plan_(new Plan) {
    plan_->opsets = opsets;
  }

  Status graph(const onnx::GraphProto& graph) {
    for (const auto& input : graph.input()) add_input(input.name());
    for (const auto& initializer : graph.initializer()) {
      plan_->initializers[static_cast<size_t>(define(initializer.name()))] = &initializer;
    }
    for (const auto& sparse : graph.sparse_initializer()) {
      plan_->sparse_initializers[define(sparse.values().name())] = &sparse;
    }
    ATTN_OPT_CHECK(nodes(graph.node()));
    for (const auto& output : graph.output()) ATTN_OPT_CHECK(add_output(output.name()));
    return {};
  }

  Status function(const onnx::FunctionProto& function) {
    for (const auto& name : function.input()) add_input(name);
    ATTN_OPT_CHECK(nodes(function.node()));
    for (const auto& name : function.output()) {  // a body may leave optional outputs out
      plan_->outputs.push_back(find(name));
      plan_->output_names.push_back(name);
    }
    return {};
  }

  std::unique_ptr<Plan> finish() {
    release_after_last_use();
    return std::move(plan_);
  }

 private:
  int define(const std::string& name) {
    const auto [entry, is_new] = slots_.try_emplace(name, static_cast<int>(plan_->initializers.size()));
    if (is_new) plan_->initializers.push_back(nullptr);
    return entry->second;
  }

  /// The slot of NAME here, captured from an enclosing plan if need be; -1 if nothing produces it.
  int find(const std::string& name) {
    if (const auto found = slots_.find(name); found != slots_.end()) return found->second;
    const int outer = outer_ != nullptr ? outer_->find(name) : -1;
    if (outer < 0) return -1;
    const int inner = define(name);
    plan_->captures.push_back({outer, inner});
    return inner;
  }

  void add_input(const std::string& name) {
    plan_->inputs.push_back(define(name));
    plan_->input_names.push_back(name);
  }

  Status add_output(const std::string& name) {
    const int slot = find(name);
    if (slot < 0) return fail(ErrorCode::kInvalidInput, name, "nothing produces this output");
    plan_->outputs.push_back(slot);
    plan_->output_names.push_back(name);
    return {};
  }

  Expected<ResolvedOp> implementation(const onnx::NodeProto& node) const {
    if (!functions_.empty()) {
      const auto local = functions_.find(function_key(node.domain(), node.op_type(), node.overload()));
      if (local != functions_.end()) {
        ResolvedOp op;
        op.implementation = Implementation::kLocalFunction;
        op.function = local->second;
        return op;
      }
    }
    const ResolvedOp& op = resolve(node, plan_->opsets, bodies_);
    if (op.implementation == Implementation::kNone) return unsupported_op(node, plan_->opsets);
    return op;
  }

  Status nodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes) {
    plan_->steps.reserve(static_cast<size_t>(nodes.size()));
    for (const auto& node : nodes) {
      Step step;
      step.node = &node;
      ATTN_OPT_TRY(step.op, implementation(node));
      for (const auto& name : node.input()) {
        const int slot = name.empty() ? -1 : find(name);
        if (slot < 0 && !name.empty()) {
          return fail(ErrorCode::kInvalidInput, describe(node), "nothing before this node produces its input " + name);
        }
        step.inputs.push_back(slot);
      }
      for (const auto& attribute : node.attribute()) {
        if (!attribute.has_g()) continue;
        ATTN_OPT_CHECK(body(attribute.g(), step));
      }
      for (const auto& name : node.output()) step.outputs.push_back(name.empty() ? -1 : define(name));
      plan_->steps.push_back(std::move(step));
    }
    return {};
  }

  Status body(const onnx::GraphProto& graph, Step& step) {
    if (depth_ >= kDeepestNesting) {
      return fail(ErrorCode::kLimit, describe(*step.node), "bodies are nested too deep");
    }
    Planner inner(plan_->opsets, functions_, bodies_, this);
    ATTN_OPT_CHECK(inner.graph(graph));
    step.bodies.push_back(inner.finish());
    return {};
  }

  void release_after_last_use() {
    std::vector<bool> live(plan_->slots(), false);
    for (const int slot : plan_->outputs) {
      if (slot >= 0) live[static_cast<size_t>(slot)] = true;
    }
    const auto read = [&](Step& step, int slot) {
      if (slot < 0 || live[static_cast<size_t>(slot)]) return;
      live[static_cast<size_t>(slot)] = true;
      step.releases.push_back(slot);
    };
    for (size_t i = plan_->steps.size(); i-- > 0;) {
      Step& step = plan_->steps[i];
      for (const int slot : step.outputs) read(step, slot);  // never read at all: freed at once
      for (const int slot : step.inputs) read(step, slot);
      for (const auto& inner : step.bodies) {
        for (const auto& capture : inner->captures) read(step, capture.outer);
      }
    }
  }

  const LocalFunctions& functions_;
  SchemaBodies bodies_;
  Planner* outer_;
  int depth_;
  std::unique_ptr<Plan> plan_;
  std::unordered_map<std::string, int> slots_;
};

}  // namespace

std::string function_key(const std::string& domain, const std::string& name, const std::string& overload) {
  return canonical_domain(domain) + "::" + name + ":" + overload;
}

Expected<std::unique_ptr<Plan>> plan_graph(const onnx::GraphProto& graph, const Opsets& opsets, const LocalFunctions& functions,
                                           SchemaBodies bodies) {
  Planner planner(opsets, functions, bodies, nullptr);
  ATTN_OPT_CHECK(planner.graph(graph));
  return planner.finish();
}

Expected<std::unique_ptr<Plan>> plan_function(const onnx::FunctionProto& function, const Opsets& opsets,
                                              const LocalFunctions& functions, SchemaBodies bodies) {
  Opsets own = opsets;
  for (const auto& import : function.opset_import()) {
    own[canonical_domain(import.domain())] = static_cast<int>(import.version());
  }
  Planner planner(own, functions, bodies, nullptr);
  ATTN_OPT_CHECK(planner.function(function));
  return planner.finish();
}

}  // namespace attn_opt
