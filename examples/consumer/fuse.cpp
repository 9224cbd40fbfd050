// fuse INPUT OUTPUT: optimises a model and says what became of each attention in it.
#include <attn_opt/attn_opt.h>

#include <iostream>

namespace {

attn_opt::Status fuse(const char* input, const char* output) {
  ATTN_OPT_TRY(attn_opt::Model model, attn_opt::load_model(input));
  ATTN_OPT_CHECK(attn_opt::check_model(model));

  attn_opt::OptimizeOptions options;
  options.strict = false;
  options.verify = attn_opt::VerifyMode::kSites;
  options.progress = [](std::string_view step, double part) { std::cerr << step << ' ' << 100 * part << " %\n"; };
  ATTN_OPT_TRY(const attn_opt::Report report, attn_opt::optimize(model, options));

  for (const attn_opt::SiteReport& site : report.sites) std::cout << attn_opt::explain(site);
  std::cout << "attn_opt " << attn_opt::version() << ": " << report.fused() << " fused\n";
  return report.changed ? attn_opt::save_model(model, output) : attn_opt::copy_model(model, output);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: fuse INPUT OUTPUT\n";
    return attn_opt::exit_status(attn_opt::ErrorCode::kUsage);
  }
  if (const attn_opt::Status done = fuse(argv[1], argv[2]); !done) {
    std::cerr << done.error().message() << '\n';
    return attn_opt::exit_status(done.error().code);
  }
  return 0;
}
