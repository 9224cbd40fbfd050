#include "patterns/around/rotation.h"

#include <algorithm>

#include "attn_opt/canonical.h"
#include "attn_opt/operator_traits.h"
#include "attn_opt/rewrite.h"
#include "patterns/around/column_classes.h"
#include "patterns/around/linear_columns.h"

namespace attn_opt {
namespace {

constexpr int kMaxMoves = 6;
/// Values between a rotation and what it rotates.
constexpr size_t kMaxRotationValues = 64;

bool moves_columns(const Node& node) {
  return node.domain().empty() && (has(node, Trait::kMoves) || node.is("Concat") || node.is("Split") || node.is("Neg"));
}

/// The node above VALUE that does more than move columns; null if there is none near.
const Node* behind_moves(Value& value, Facts& facts) {
  const Node* node = canonical(value, facts).producer;
  for (int step = 0; step < kMaxMoves && node && moves_columns(*node) && node->input(0); ++step)
    node = canonical(*node->inputs[0], facts).producer;
  return node;
}

/// A cheap test before columns are looked at: a sum of two products.
bool may_be_rotation(Value& y, Facts& facts) {
  const Node* sum = behind_moves(y, facts);
  if (!sum || !(sum->is("Add") || sum->is("Sub"))) return false;
  return std::ranges::all_of(sum->inputs, [&](Value* term) {
    const Node* product = behind_moves(*term, facts);
    return product && product->is("Mul");
  });
}

/// True if a value of shape FROM may be broadcast to shape TO, on axes of known size: tables of a fixed length beside a free
/// one.
bool may_become(const Shape& from, const Shape& to) {
  if (from.size() != to.size() || from.back() != to.back()) return false;
  for (size_t axis = 0; axis < to.size(); ++axis)
    if (from[axis] != to[axis] && (from[axis].is_constant() || !to[axis].is_constant())) return false;
  return true;
}

/// Values that Y is made of by sums, products and moves, of Y's shape or broadcast to it, the nearest first. Of several names
/// of one value it is the first: what all of them are copies of.
std::vector<Value*> candidates(Value& y, Facts& facts) {
  const Shape& shape = facts.shape(y).known();
  std::vector<Value*> seen = {&y}, found;
  for (size_t at = 0; at < seen.size() && seen.size() < kMaxRotationValues; ++at) {
    const Node* node = seen[at]->producer;
    if (!node || !(moves_columns(*node) || node->is("Add") || node->is("Sub") || node->is("Mul"))) continue;
    for (Value* input : node->inputs) {
      Value* source = input ? &canonical(*input, facts) : nullptr;
      if (source && std::ranges::find(seen, source) == seen.end()) seen.push_back(source);
    }
  }
  std::ranges::copy_if(seen.begin() + 1, seen.end(), std::back_inserter(found), [&](const Value* value) {
    const MaybeShape own = facts.shape(*value);
    return own && may_become(*own, shape);
  });
  const auto place = [](const Value* value) { return value->producer ? int64_t{value->producer->position} : -1; };
  std::ranges::stable_sort(found, std::ranges::greater(), place);
  return found;
}

/// Column j of Y: SAME times column j of X and OTHER times that of its partner; no factor: column j itself.
struct TurnedColumn {
  LinearTerm same, other;
  bool is_rotated() const { return same.factor.value != nullptr; }
};

std::optional<std::vector<TurnedColumn>> turned_columns(const std::vector<LinearColumn>& columns) {
  std::vector<TurnedColumn> turned;
  for (size_t index = 0; index < columns.size(); ++index) {
    const LinearColumn& terms = columns[index];
    const bool passes = terms.size() == 1 && !terms[0].factor.value && terms[0].sign == 1 && terms[0].from == index;
    const bool rotates = terms.size() == 2 && terms[0].factor.value && terms[1].factor.value;
    if (!passes && !rotates) return std::nullopt;
    const size_t same = rotates && terms[0].from != index ? 1 : 0;
    if (terms[same].from != index) return std::nullopt;
    turned.push_back({terms[same], terms[passes ? 0 : 1 - same]});
  }
  return turned;
}

/// Reads the pairs of one rotation.
class PairReader {
 public:
  PairReader(Value& x, Value& y, std::vector<TurnedColumn> columns, Facts& facts)
      : y_(y), columns_(std::move(columns)), classes_(facts) {
    rotation_.x = &x, rotation_.y = &y;
  }

  Matched<Rotation> read() {
    ATTN_OPT_DONE(layout());
    for (size_t index = 0; index < columns_.size(); ++index) ATTN_OPT_DONE(check(index));
    ATTN_OPT_DONE(enter(rotation_.cos, &TurnedColumn::same));
    ATTN_OPT_DONE(enter(rotation_.sin, &TurnedColumn::other));
    rotation_.sin.negated = columns_[0].other.sign == 1;
    return rotation_;
  }

 private:
  tl::unexpected<Miss> miss(const std::string& id, size_t index, const std::string& what) const {
    return missed(id, y_.producer, "column " + std::to_string(index) + " of '" + y_.name + "' " + what);
  }

  /// How pairs lie in a head, and heads in the columns: told by the first pair, and by where rotation ends and begins again.
  Matched<void> layout() {
    const auto is_rotated = [](const TurnedColumn& column) { return column.is_rotated(); };
    const size_t partner = columns_[0].other.from;
    if (!columns_[0].is_rotated() || partner == 0) return miss("rotary.pairs", 0, "is not rotated");
    rotation_.interleaved = partner == 1 && columns_.size() > 2;
    const auto end = std::ranges::find_if_not(columns_, is_rotated);
    const auto run = static_cast<size_t>(end - columns_.begin());
    rotation_.rotated = rotation_.interleaved ? run : 2 * partner;
    if (rotation_.rotated > run || rotation_.rotated % 2 != 0) return miss("rotary.pairs", run, "has no partner");
    const auto next =
        std::find_if(columns_.begin() + static_cast<std::ptrdiff_t>(rotation_.rotated), columns_.end(), is_rotated);
    rotation_.head_size = static_cast<size_t>(next - columns_.begin());
    return {};
  }

  size_t in_head(size_t index) const { return index % rotation_.head_size; }

  size_t partner_of(size_t index) const {
    const size_t half = rotation_.rotated / 2, at = in_head(index);
    if (rotation_.interleaved) return at % 2 == 0 ? index + 1 : index - 1;
    return at < half ? index + half : index - half;
  }

  bool is_first(size_t index) const {
    return rotation_.interleaved ? in_head(index) % 2 == 0 : in_head(index) < rotation_.rotated / 2;
  }

  /// That the column INDEX is that of a rotation whose pairs lie so: by its partner, and by the column of the first head in its
  /// place.
  Matched<void> check(size_t index) {
    const TurnedColumn& own = columns_[index];
    if (own.is_rotated() != (in_head(index) < rotation_.rotated))
      return miss("rotary.pairs", index, "is rotated in some heads only");
    if (!own.is_rotated()) return {};
    const size_t partner = partner_of(index);
    if (own.other.from != partner || partner >= columns_.size())
      return miss("rotary.pairs", index, "is paired with column " + std::to_string(own.other.from));
    if (own.same.sign != 1) return miss("rotary.sign", index, "takes its own column negative");
    if (!is_first(index)) return check_pair(columns_[partner], own, partner);
    const TurnedColumn& first = columns_[in_head(index)];
    const bool is_like_first = classes(own.same) == classes(first.same) && classes(own.other) == classes(first.other);
    return is_like_first ? Matched<void>() : miss("rotary.angles", index, "has another factor than that of the first head");
  }

  Matched<void> check_pair(const TurnedColumn& one, const TurnedColumn& other, size_t index) {
    const SignedColumn sin = classes(one.other), opposite = classes(other.other);
    if (classes(one.same) != classes(other.same))
      return miss("rotary.angles", index, "and its partner have different factors for themselves");
    if (sin.column != opposite.column)
      return miss("rotary.angles", index, "and its partner have different factors for each other");
    if (sin.sign == opposite.sign) return miss("rotary.sign", index, "and its partner take each other with the same sign");
    return {};
  }

  /// TERM's factor, with TERM's sign.
  SignedColumn classes(const LinearTerm& term) {
    const auto& all = classes_.of(*term.factor.value, term.factor_axes);
    SignedColumn found = term.factor.index < all.size() ? all[term.factor.index] : SignedColumn{term.factor, 1};
    found.sign *= term.sign;
    return found;
  }

  /// The factors of the first columns of the first head's pairs, as columns of one value.
  Matched<void> enter(PairTable& table, LinearTerm TurnedColumn::* term) const {
    const size_t apart = rotation_.interleaved ? 2 : 1;
    const LinearTerm& first = columns_[0].*term;
    table = {first.factor.value, first.factor_axes, first.factor.index, 1, rotation_.rotated / 2, false};
    if (table.count > 1) table.step = (columns_[apart].*term).factor.index - table.start;
    for (size_t pair = 0; pair < table.count; ++pair) {
      const LinearTerm& own = columns_[pair * apart].*term;
      if (own.factor != Column{table.value, table.start + pair * table.step} || own.sign != first.sign)
        return miss("rotary.angles", pair * apart, "has a factor that does not stand in line with those of the others");
    }
    return table.step > 0 && table.step <= kMaxColumns ? Matched<void>()
                                                       : miss("rotary.angles", 0, "has the factor of all others");
  }

  Value& y_;
  std::vector<TurnedColumn> columns_;
  ColumnClasses classes_;
  Rotation rotation_;
};

Matched<Rotation> rotation_from(Value& x, Value& y, Facts& facts) {
  LinearColumns reader(x, facts.shape(x).known(), facts.shape(y).known(), facts);
  auto turned = turned_columns(reader.of(y));
  const bool rotates = turned && std::ranges::any_of(*turned, [](const TurnedColumn& column) { return column.is_rotated(); });
  if (!rotates) return missed(std::string(kNoMatch), y.producer, "'" + y.name + "' is no rotation of '" + x.name + "'");
  return PairReader(x, y, *std::move(turned), facts).read();
}

}  // namespace

Matched<Rotation> rotation_of(Value& y, Facts& facts) {
  Miss miss{std::string(kNoMatch), y.producer, "'" + y.name + "' is no sum of two products", {}};
  // A number has no columns.
  const bool has_columns = !facts.shape(y).has_rank(0) && column_sizes(y, 1, facts);
  if (!has_columns || !may_be_rotation(y, facts)) return tl::unexpected(miss);
  for (Value* x : candidates(y, facts)) {
    auto rotation = rotation_from(*x, y, facts);
    if (rotation) return rotation;
    if (miss.id == kNoMatch) miss = rotation.error();
  }
  return tl::unexpected(miss);
}

}  // namespace attn_opt
