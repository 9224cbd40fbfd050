// A pattern regression case: a model in ONNX's textual syntax under a header of comments (docs/cases.md).
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attn_opt/optimizer.h"
#include "src/trial/draw_inputs.h"
#include "src/trial/tensor_difference.h"

namespace attn_opt {

/// Ending of files that hold what a case's model becomes; they are no cases themselves.
inline constexpr std::string_view kGoldenEnding = ".after.onnxtxt";

/// A number and how far off one may be that is taken for it.
struct ExpectedNumber {
  double value = 0, tolerance = 0;
  bool admits(double other) const;
};

struct ExpectedPrecondition {
  std::string id;
  std::string state;  ///< as state_of() says it; empty: any
};

/// What EXPECT lines ask for. Lists for sites name all the values there are: every recognised site has one of
/// them, and every one of them has a site.
struct Expectations {
  int fused = 0;
  std::optional<int> refused, missed, opset, rewritten;
  std::vector<std::string> misses;                             ///< each is the id of some site that is not fused
  std::vector<ExpectedPrecondition> preconditions;             ///< each is listed by some site
  std::map<std::string, int> operators;                        ///< nodes of the result
  std::map<std::string, std::vector<std::string>> attributes;  ///< of the Attention nodes of the result
  std::vector<std::string> forms, verdicts;
  std::vector<ExpectedNumber> scales, softcaps;
  std::vector<int64_t> kv_heads;
  std::vector<bool> past;
};

/// What all cases of a run have beside what their RUN lines say. Rules that a RUN line names come behind these.
struct CasePatterns {
  std::vector<std::string> rules = {};  ///< folders
  std::vector<std::shared_ptr<const Pattern>> others = {};
  std::vector<std::shared_ptr<const Rewrite>> rewrites = {};
};

/// How the outputs before and after are compared.
struct OutputCheck {
  bool compute_f64 = false;
  DataType type = onnx::TensorProto::UNDEFINED;  ///< that one of the outputs must be of; UNDEFINED: any
  std::optional<double> rtol, atol;
  bool forbid_nan = false;
};

struct Case {
  std::filesystem::path path;
  std::string name, source;
  OptimizeOptions options;
  Expectations expect;
  DrawOptions draw;
  std::optional<OutputCheck> verify = OutputCheck{};
  std::filesystem::path golden;  ///< empty if there is none
};

/// Errors: kInvalidInput (cannot be read), kUsage (a header that says what is not understood; `where` has the
/// line).
Expected<Case> read_case(const std::filesystem::path& path, const CasePatterns& patterns = {});

/// Every case at PATHS, folders searched recursively, each folder's sorted.
/// Errors: kInvalidInput (no such path), kUsage (a file that is no .onnxtxt, a folder without any).
Expected<std::vector<std::filesystem::path>> find_cases(const std::vector<std::string>& paths);

}  // namespace attn_opt
