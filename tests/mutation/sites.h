// Models, the attention sites in them, and mutants of those sites.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "attn_opt/internal/verifier.h"
#include "attn_opt/model.h"
#include "tests/mutation/mutation.h"

namespace attn_opt {

/// What became of one mutant.
enum class Fate {
  kNone,  ///< no mutant: it is written as the site itself, or cannot be written
  kRefused,
  kUnverified,  ///< could not be run
  kSurvived,
};

struct Outcome {
  Fate fate = Fate::kNone;
  std::string reason;  ///< of kUnverified
};

/// A site that is verified as it is.
struct RightSite {
  Match match;
  std::string written;  ///< its edit as text
};

/// A model whose sites are to be got wrong.
class MutatedModel {
 public:
  /// Null if the model cannot be loaded, or is a case of which nothing is fused. Of a case the options are its own.
  static std::unique_ptr<MutatedModel> load(const std::filesystem::path& path);

  /// The sites that are verified as they are, equal ones once; FAILURES gets a line for each that is not.
  std::vector<RightSite> right_sites(std::vector<std::string>& failures);

  /// The places of SITE where MUTATION applies.
  std::vector<Change<Sdpa>> places(const RightSite& site, const DescriptionMutation& mutation);
  std::vector<Change<Emission>> places(const RightSite& site, const EditMutation& mutation);
  /// What verification says of SITE with CHANGE in its description, in what is written for it.
  Outcome verify_mutant(const RightSite& site, const Change<Sdpa>& change);
  Outcome verify_mutant(const RightSite& site, const Change<Emission>& change);

 private:
  MutatedModel(std::unique_ptr<Model> model, std::unique_ptr<ModelGraph> view, const EmitOptions& emission);
  Matched<Emission> emit(const Match& match);
  Outcome judge(const std::string& right, const Emission& wrong, const Sdpa& sdpa);

  std::unique_ptr<Model> model_;
  std::unique_ptr<ModelGraph> view_;
  Facts facts_;
  MatchContext context_;
  SharedNodes nothing_shared_;
  EmitOptions emission_;
  Verifier verifier_;
};

}  // namespace attn_opt
