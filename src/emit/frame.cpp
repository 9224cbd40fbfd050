#include "src/emit/frame.h"

#include <algorithm>
#include <optional>
#include <string>

#include "src/emit/joint_batch.h"
#include "src/emit/layout.h"

namespace attn_opt {
namespace {

enum Part { kBatchPart, kHeadPart };

/// For each leading axis of a frame, which of batch and heads it has a part of.
using LeadingParts = std::vector<std::vector<Part>>;

std::optional<LeadingParts> leading_parts(Shape frame, const Shape& scores) {
  const AxisMap base = AxisMap::of(scores, {Role::kBatch, Role::kHead, Role::kRow, Role::kFeature});
  // The last two are L and S in every frame, whatever symbols say so.
  std::copy(scores.end() - 2, scores.end(), frame.end() - 2);
  const auto map = base.regrouped(frame);
  if (!map) return std::nullopt;
  LeadingParts parts(frame.size() - 2);
  for (size_t axis = 0; axis < parts.size(); ++axis)
    for (int factor : map->axis(axis)) {
      const Role role = map->factors()[factor].role;
      if (role != Role::kBatch && role != Role::kHead) return std::nullopt;
      parts[axis].push_back(role == Role::kBatch ? kBatchPart : kHeadPart);
    }
  return parts;
}

/// Leading axes of a frame whose sizes prove nothing: (…, H) are batch and heads.
LeadingParts assumed_parts(const Shape& frame) {
  LeadingParts parts(frame.size() - 2, {kBatchPart});
  parts.back() = {kHeadPart};
  return parts;
}

bool has(const std::vector<Part>& parts, Part part) { return std::ranges::find(parts, part) != parts.end(); }

/// Drops the axes of size 1 in front of the last two, or adds such, until the rank is RANK.
Placed with_rank(Placed value, size_t rank, Site& site) {
  std::vector<int64_t> axes;
  const bool adds = value.shape.size() < rank;
  const size_t count = adds ? rank - value.shape.size() : value.shape.size() - rank;
  axes.reserve(count);
  for (size_t axis = 0; axis < count; ++axis) axes.push_back(static_cast<int64_t>(axis));
  if (axes.empty()) return value;
  value.value = site.build.along(adds ? "Unsqueeze" : "Squeeze", *value.value, axes);
  if (adds)
    value.shape.insert(value.shape.begin(), count, 1);
  else
    value.shape.erase(value.shape.begin(), value.shape.begin() + static_cast<std::ptrdiff_t>(count));
  return value;
}

/// Which of batch and heads a value of SHAPE, aligned right with the frame, varies along.
std::vector<Part> varying_parts(const Shape& shape, const LeadingParts& parts) {
  std::vector<Part> varying;
  const size_t absent = parts.size() + 2 - shape.size();
  for (size_t axis = absent; axis < parts.size(); ++axis)
    if (!shape[axis - absent].is(1)) varying.insert(varying.end(), parts[axis].begin(), parts[axis].end());
  return varying;
}

/// The size that VALUE, of the frame's rank, has of PART, which the scores have as JOINT: its own where one axis holds PART and
/// nothing else, which broadcasts on.
const Dim& size_of(Part part, const Placed& value, const LeadingParts& parts, const Dim& joint) {
  const auto holds = [&](const std::vector<Part>& held) { return has(held, part); };
  const auto first = std::ranges::find_if(parts, holds);
  const bool is_alone = first != parts.end() && first->size() == 1 && std::none_of(first + 1, parts.end(), holds);
  return is_alone ? value.shape[static_cast<size_t>(first - parts.begin())] : joint;
}

/// Where batch and heads are one axis of MET, of a size that only VALUE has: it is theirs, or 1, which broadcasts. VALUE
/// becomes as they are, and MET what it is then. Miss "emit.shape".
Matched<void> stretch_over_batch_and_heads(Placed& value, Shape& met, Site& site) {
  constexpr size_t kRankOfMerged = 3;
  if (met.size() != kRankOfMerged || value.shape.size() != kRankOfMerged || value.shape[0] != met[0]) return {};
  const Shape target{site.scores[0] * site.scores[1], 1, 1};
  ATTN_OPT_MATCH(Value * sizes, site.sizes_of(target, *value.value));
  value.value = site.build.node("Expand", {value.value, sizes});
  value.shape[0] = met[0] = target[0];
  return {};
}

/// Expands the axes of size 1 that hold a part of what VALUE varies along: only whole parts can be merged.
Matched<void> complete_parts(Placed& value, const Shape& frame, const LeadingParts& parts, const std::vector<Part>& varying,
                             Site& site) {
  Shape target(frame.size(), 1);
  bool expands = false;
  for (size_t axis = 0; axis < parts.size(); ++axis) {
    const bool wanted = std::any_of(parts[axis].begin(), parts[axis].end(), [&](Part p) { return has(varying, p); });
    if (!wanted || value.shape[axis] == frame[axis]) continue;
    if (parts[axis].size() == 1 && size_of(parts[axis][0], value, parts, frame[axis]) == value.shape[axis]) continue;
    const bool broadcasts = std::ranges::find(site.batch, frame[axis], &BatchAxis::joint) != site.batch.end();
    if (!value.shape[axis].is(1) && !broadcasts) {
      if (!may_be_equal(value.shape[axis], frame[axis]))
        return missed("emit.mask-shape", value.value->producer, to_string(value.shape) + " in " + to_string(frame));
      site.assume_equal(value.shape[axis], frame[axis], "mask " + to_string(value.shape) + " against " + to_string(frame));
      continue;
    }
    target[axis] = value.shape[axis] = frame[axis];
    expands = true;
  }
  if (!expands) return {};
  ATTN_OPT_MATCH(Value * sizes, site.sizes_of(target, *value.value));
  value.value = site.build.node("Expand", {value.value, sizes});
  return {};
}

}  // namespace

bool is_scores_frame(const Shape& frame, Site& site) {
  if (frame.size() <= 2) return true;
  if (frame.size() == 3) return site.scores[0].is(1);
  if (frame.size() != 4) return false;
  for (size_t axis : {0, 1})
    if (!may_be_equal(frame[axis], site.scores[axis])) return false;
  if (frame[0] == site.scores[0] && frame[1] == site.scores[1]) return true;
  const auto parts = leading_parts(frame, site.scores);
  return !parts || (!has((*parts)[0], kHeadPart) && !has((*parts)[1], kBatchPart));
}

Matched<Placed> to_scores_frame(Placed value, const Shape& met, Site& site) {
  Shape frame = of_joint_batch(met, site);
  if (value.shape.size() > frame.size())
    return missed("emit.frame", value.value->producer, to_string(value.shape) + " in a frame " + to_string(frame));
  if (value.shape.size() <= 2 || is_scores_frame(frame, site)) return value;
  auto parts = leading_parts(frame, site.scores);
  if (!parts && frame.size() > 3 && frame[frame.size() - 3] == site.scores[1]) parts = assumed_parts(frame);
  if (!parts) {
    ATTN_OPT_DONE(stretch_over_batch_and_heads(value, frame, site));
    parts = leading_parts(frame, site.scores);
  }
  if (!parts) return missed("emit.frame", value.value->producer, to_string(frame) + " against " + to_string(site.scores));
  std::vector<Part> varying = varying_parts(value.shape, *parts);
  if (varying.empty()) return with_rank(std::move(value), 2, site);
  value = with_rank(std::move(value), frame.size(), site);
  ATTN_OPT_DONE(complete_parts(value, frame, *parts, varying, site));
  varying = varying_parts(value.shape, *parts);  // what was expanded varies along all that its axes hold
  ATTN_OPT_DONE(complete_parts(value, frame, *parts, varying, site));
  const Shape& from = value.shape;
  const auto leading = [&](Part part, const Dim& joint) {
    return has(varying, part) ? size_of(part, value, *parts, joint) : Dim(1);
  };
  const Shape to{leading(kBatchPart, site.scores[0]), leading(kHeadPart, site.scores[1]), from[from.size() - 2],
                 from[from.size() - 1]};
  ATTN_OPT_MATCH(value.value, write_reshape(*value.value, from, to, site));
  value.shape = to;
  return value;
}

}  // namespace attn_opt
