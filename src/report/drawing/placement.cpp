#include "src/report/drawing/placement.h"

#ifdef ATTN_OPT_HAS_GRAPHVIZ

#include <graphviz/gvc.h>

#include <memory>
#include <mutex>

#include "src/report/drawing/dot.h"

extern "C" {
extern gvplugin_library_t gvplugin_dot_layout_LTX_library;
}

namespace attn_opt {
namespace {

/// Its plugin is linked, so that no file of the machine says which there are.
GVC_t* context() {
  static lt_symlist_t plugins[] = {{"gvplugin_dot_layout_LTX_library", &gvplugin_dot_layout_LTX_library}, {nullptr, nullptr}};
  static GVC_t* const made = gvContextPlugins(plugins, 0);
  return made;
}

struct CloseGraph {
  void operator()(Agraph_t* graph) const {
    gvFreeLayout(context(), graph);
    agclose(graph);
  }
};

class LaidOut {
 public:
  LaidOut(Agraph_t& graph, const Diagram& diagram) : graph_(graph), diagram_(diagram) {}

  PlacedDiagram read() {
    const boxf box = GD_bb(&graph_);
    height_ = box.UR.y;
    result_.width = box.UR.x;
    result_.height = box.UR.y;
    for (size_t i = 0; i < diagram_.boxes.size(); ++i) {
      nodes_.push_back(agnode(&graph_, ("n" + std::to_string(i)).data(), 0));
      result_.centres.push_back(point(ND_coord(nodes_.back())));
    }
    result_.arrows.resize(diagram_.arrows.size());
    for (Agnode_t* node : nodes_)
      for (Agedge_t* edge = agfstout(&graph_, node); edge; edge = agnxtout(&graph_, edge)) read_edge(*edge);
    return std::move(result_);
  }

 private:
  Point point(const pointf& p) const { return {p.x, height_ - p.y}; }

  /// Edges are numbered in the order in which the text had them.
  void read_edge(Agedge_t& edge) {
    const auto number = static_cast<size_t>(AGSEQ(&edge)) - 1;
    const splines* curves = ED_spl(&edge);
    if (number >= result_.arrows.size() || !curves || curves->size == 0) return;
    const bezier& curve = curves->list[0];
    PlacedDiagram::PlacedArrow& arrow = result_.arrows[number];
    for (int i = 0; i < curve.size; ++i) arrow.curve.push_back(point(curve.list[i]));
    arrow.head = curve.eflag ? point(curve.ep) : arrow.curve.back();
    if (const textlabel_t* label = ED_label(&edge); label && label->set) arrow.label = point(label->pos);
  }

  Agraph_t& graph_;
  const Diagram& diagram_;
  double height_ = 0;
  std::vector<Agnode_t*> nodes_;
  PlacedDiagram result_;
};

}  // namespace

bool can_place() { return true; }

std::optional<PlacedDiagram> placed(const Diagram& diagram) {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  const std::unique_ptr<Agraph_t, CloseGraph> graph(agmemread(dot_to_lay_out(diagram).c_str()));
  if (!graph || gvLayout(context(), graph.get(), "dot") != 0) return std::nullopt;
  return LaidOut(*graph, diagram).read();
}

}  // namespace attn_opt

#else

namespace attn_opt {

bool can_place() { return false; }
std::optional<PlacedDiagram> placed(const Diagram&) { return std::nullopt; }

}  // namespace attn_opt

#endif
