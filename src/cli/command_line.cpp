#include "src/cli/command_line.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdio>

#include "src/io/nearest_name.h"
#include "src/io/one_line.h"

namespace attn_opt {
namespace {

/// What to do about words that APP did not expect: an option may be misspelt.
std::string remedy_for(const CLI::App& app, const std::vector<std::string>& unexpected) {
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  for (const std::string& word : unexpected) {
    if (!word.starts_with("--")) continue;
    if (const auto near = nearest_name(word.substr(0, word.find('=')), known)) return "did you mean '" + *near + "'?";
  }
  return app.get_name() + " --help lists the options";
}

}  // namespace

Expected<bool> parse(CLI::App& app, const Arguments& arguments) {
  Arguments last_first(arguments.rbegin(), arguments.rend());
  try {
    app.parse(std::move(last_first));
    return true;
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return false;
  } catch (const CLI::CallForVersion& version) {
    std::printf("%s\n", version.what());
    return false;
  } catch (const CLI::ExtrasError& error) {
    return fail(ErrorCode::kUsage, "usage", one_line(error.what()), remedy_for(app, app.remaining()));
  } catch (const CLI::ParseError& error) {
    return fail(ErrorCode::kUsage, "usage", one_line(error.what()),
                app.get_name() + " --help lists the options");
  }
}

void declare_verbosity(CLI::App& app, Verbosity& verbosity) {
  auto* verbose = app.add_flag("-v,--verbose", verbosity.verbose, "Say more; -vv also why each pattern does not match at each node");
  app.add_flag("-q,--quiet", verbosity.quiet, "Say nothing but errors")->excludes(verbose);
}

void set_up_log(const Verbosity& verbosity) {
  auto logger =
      std::make_shared<spdlog::logger>("attn-opt", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern("attn-opt: %l: %v");
  logger->set_level(verbosity.quiet          ? spdlog::level::err
                    : verbosity.verbose == 0 ? spdlog::level::warn
                    : verbosity.verbose == 1 ? spdlog::level::info
                                             : spdlog::level::debug);
  spdlog::set_default_logger(std::move(logger));
}

CLI::Option* declare_list(CLI::App& app, const std::string& name, std::vector<std::string>& values,
                          const std::string& description, bool split) {
  auto* option = app.add_option(name, values, description)->allow_extra_args(false);
  return split ? option->delimiter(',') : option;
}

}  // namespace attn_opt
