// Patterns that are written as text and loaded at run time: docs/rules.md describes the files.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "attn_opt/pattern.h"
#include "attn_opt/rewrite.h"
#include "attn_opt/status.h"

namespace attn_opt {

/// The rule of attention that TEXT, of a file called WHERE, spells. Errors: kInvalidInput (also if it writes no Attention
/// node), kLimit; `where` has the line if one is to blame.
Expected<std::unique_ptr<Pattern>> parse_rule(std::string_view text, const std::string& where);
/// The same of a rule whose replacement has no Attention node.
Expected<std::unique_ptr<Rewrite>> parse_rewrite(std::string_view text, const std::string& where);

/// What files of rules spell.
struct Rules {
  std::vector<std::shared_ptr<const Pattern>> patterns;  ///< those that write an Attention node
  std::vector<std::shared_ptr<const Rewrite>> rewrites;  ///< all others
};

/// The rules of the files *.rule in FOLDERS: folder after folder, in each by the name of the file. A folder that is given twice
/// is read once. Errors: kInvalidInput (no such folder, none in it, one cannot be read or is called like another pattern),
/// kLimit.
Expected<Rules> load_rules(const std::vector<std::string>& folders);

}  // namespace attn_opt
