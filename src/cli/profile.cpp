#include "src/cli/profile.h"

#include <nlohmann/json.hpp>

#include "src/io/output_file.h"
#include "src/trial/tensor_difference.h"

namespace attn_opt {
namespace {

/// "float32 (2, 3), int64 ()".
std::string types_of(std::span<const Tensor> values) {
  std::string text;
  for (const Tensor& value : values) {
    if (!text.empty()) text += ", ";
    text += value.has_value() ? type_name(value.type()) + " " + to_string(value.dims()) : "-";
  }
  return text;
}

}  // namespace

void Profile::add(const NodeRun& run) {
  events_.push_back({run.node.op_type(), run.node.name(), types_of(run.inputs), types_of(run.outputs), run.start, run.end});
}

Status Profile::write(const std::filesystem::path& path) const {
  using Microseconds = std::chrono::duration<double, std::micro>;
  auto origin = events_.empty() ? std::chrono::steady_clock::time_point() : events_.front().start;
  for (const Event& event : events_) origin = std::min(origin, event.start);
  nlohmann::json events = nlohmann::json::array();
  for (const Event& event : events_) {
    events.push_back({{"ph", "X"},
                      {"name", event.op_type},
                      {"cat", "node"},
                      {"pid", 1},
                      {"tid", 1},
                      {"ts", Microseconds(event.start - origin).count()},
                      {"dur", Microseconds(event.end - event.start).count()},
                      {"args", {{"node", event.node}, {"inputs", event.inputs}, {"outputs", event.outputs}}}});
  }
  const nlohmann::json trace = {{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}};
  ATTN_OPT_TRY(OutputFile file, OutputFile::create(path));
  ATTN_OPT_CHECK(file.append(trace.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)));
  return file.replace_target();
}

}  // namespace attn_opt
