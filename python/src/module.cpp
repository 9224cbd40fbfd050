// attn_opt._core: the C++ side of the Python package.
#include "attn_opt/version.h"
#include "python/src/bindings.h"
#include "python/src/scope.h"

NB_MODULE(_core, module) {
  using namespace attn_opt::python;
  module.doc() = "The C++ side of attn_opt. Use the attn_opt package instead: what is here may change.";
  module.attr("__version__") = text(attn_opt::version());
  bind_dims(module);
  bind_graph(module);
  bind_builder(module);
  bind_graph_builder(module);
  bind_context(module);
  bind_matchers(module);
  bind_patterns(module);
  bind_optimize(module);
  bind_cases(module);
  bind_runs(module);
}
