// rewrite INPUT OUTPUT: applies a rewrite of its own, beside what attn-opt does, and says what became of each place. With -v as
// the first word it says, too, what kept it from matching elsewhere.
#include <attn_opt/attn_opt.h>

#include <iostream>
#include <string_view>

namespace {

using namespace attn_opt;

class NegatedRelu : public Rewrite {
 public:
  std::string_view name() const override { return "negated_relu"; }
  std::string_view summary() const override { return "Relu(-x) = -min(x, 0)"; }
  bool is_anchor(const Node& node) const override { return node.is("Relu"); }

  Matched<RewriteMatch> match(const Node& node, RewriteContext& context) const override {
    Value* x = nullptr;
    ATTN_OPT_DONE(fits(op("Relu", {op("Neg", {any(&x)})}), *node.outputs[0], context.facts, std::string(kNoMatch)));
    RewriteMatch match;
    match.values = {{"x", x}, {"y", node.outputs[0]}};
    match.numbers["type"] = context.facts.type(*x);
    return match;
  }

  Matched<std::vector<Replacement>> apply(const RewriteMatch& match, GraphBuilder& build) const override {
    const auto type = static_cast<DataType>(match.number("type"));
    Value* least = build.node("Min", {match.value("x"), build.scalar(0, type)});
    return std::vector<Replacement>{{match.value("y"), build.node("Neg", {least})}};
  }
};

void trace(std::string_view name, const Node& node, const Miss& miss) {
  std::cerr << name << " at " << node.label() << ": " << miss.id << ": " << miss.found << '\n';
}

Status rewrite(const char* input, const char* output, bool is_verbose) {
  ATTN_OPT_TRY(Model model, load_model(input));
  ATTN_OPT_CHECK(check_model(model));
  OptimizeOptions options;
  options.rewrites = {std::make_shared<NegatedRelu>()};
  if (is_verbose) options.trace = trace;
  ATTN_OPT_TRY(const Report report, optimize(model, options));
  for (const RewriteReport& place : report.rewrites) std::cout << explain(place);
  std::cout << report.rewritten() << " of " << report.rewrites.size() << " applied\n";
  return report.changed ? save_model(model, output) : copy_model(model, output);
}

}  // namespace

int main(int argc, char** argv) {
  const bool is_verbose = argc > 1 && std::string_view(argv[1]) == "-v";
  const int first = is_verbose ? 2 : 1;
  if (argc != first + 2) {
    std::cerr << "usage: rewrite [-v] INPUT OUTPUT\n";
    return exit_status(ErrorCode::kUsage);
  }
  if (const Status done = rewrite(argv[first], argv[first + 1], is_verbose); !done) {
    std::cerr << done.error().message() << '\n';
    return exit_status(done.error().code);
  }
  return 0;
}
