// The parts of the extension module, a file each.
#pragma once

#include <nanobind/nanobind.h>

namespace attn_opt::python {

void bind_dims(nanobind::module_& module);
void bind_graph(nanobind::module_& module);
void bind_builder(nanobind::module_& module);
void bind_graph_builder(nanobind::module_& module);
void bind_context(nanobind::module_& module);
void bind_matchers(nanobind::module_& module);
void bind_patterns(nanobind::module_& module);
void bind_optimize(nanobind::module_& module);
void bind_cases(nanobind::module_& module);
void bind_runs(nanobind::module_& module);

}  // namespace attn_opt::python
