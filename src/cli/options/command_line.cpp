#include "src/cli/options/command_line.h"

#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>

#include "src/cli/options/option_table.h"
#include "src/io/check/nearest_name.h"
#include "src/io/one_line.h"

namespace attn_opt {
namespace {

std::string see_help(const CLI::App& app) { return app.get_name() + " --help lists the options"; }

bool is_option(const std::string& word) { return word.size() > 1 && word.starts_with('-'); }

/// What other tools call things that are called otherwise here.
std::string remedy_for_name(const std::string& name) {
  static const std::map<std::string, std::string> kElsewhere = {{"list-patterns", "attn-opt patterns lists them"},
                                                                {"inplace", "-o INPUT writes over the input"},
                                                                {"in-place", "-o INPUT writes over the input"}};
  for (const std::string format : {"format", "html", "json", "markdown", "md", "sarif", "junit", "xml"})
    if (name == format) return "--report FILE writes a report; the ending says the format";
  const auto known = kElsewhere.find(name);
  return known == kElsewhere.end() ? "" : known->second;
}

/// What to do about words that APP did not expect: an option may be misspelt, or the output stand alone.
std::string remedy_for(const CLI::App& app, const std::vector<std::string>& unexpected) {
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) known.push_back(name);
  for (const std::string& word : unexpected) {
    if (!is_option(word) && app.get_option_no_throw("--output") != nullptr) return "to write there: -o " + word;
    if (!word.starts_with("--")) continue;
    const std::string name = word.substr(2, word.find('=') - 2);
    if (std::string remedy = remedy_for_name(name); !remedy.empty()) return remedy;
    if (const auto near = nearest_name(name, known)) return "did you mean '--" + *near + "'?";
  }
  return see_help(app);
}

tl::unexpected<Error> usage_error(const std::string& what, std::string remedy) {
  return fail(ErrorCode::kUsage, "usage", one_line(what), std::move(remedy));
}

tl::unexpected<Error> no_value_of(const std::string& name, const std::string& value, const std::string& wanted) {
  return fail(ErrorCode::kUsage, name, "'" + one_line(value) + "' is no value of it", "it takes " + wanted);
}

/// CLI11 says "Could not convert: --opset = latest".
tl::unexpected<Error> wrong_value(const CLI::App& app, const std::string& said) {
  constexpr std::string_view kBegin = "Could not convert: ", kEquals = " = ";
  const size_t equals = said.find(kEquals);
  if (!said.starts_with(kBegin) || equals == std::string::npos) return usage_error(said, see_help(app));
  const std::string name = said.substr(kBegin.size(), equals - kBegin.size()), value = said.substr(equals + kEquals.size());
  const CLI::Option* option = app.get_option_no_throw(name);
  return option == nullptr ? usage_error(said, see_help(app)) : no_value_of(name, value, value_label(*option));
}

/// NUMBER of CLI11's, which has digits of a fraction, or all 309 of the greatest.
std::string short_number(const std::string& number) { return fmt::format("{:.9g}", std::strtod(number.c_str(), nullptr)); }

/// CLI11 says "--seeds: Value 0 not in range 1 to 2147483647".
std::optional<tl::unexpected<Error>> out_of_range(const std::string& name, const std::string& said) {
  constexpr std::string_view kBegin = "Value ", kRange = " not in range ", kTo = " to ";
  constexpr double kUnbounded = 1e9;
  const size_t range = said.rfind(kRange), to = said.rfind(kTo);
  if (!said.starts_with(kBegin) || range == std::string::npos || to == std::string::npos || to < range) return std::nullopt;
  const std::string value = said.substr(kBegin.size(), range - kBegin.size());
  const std::string least = said.substr(range + kRange.size(), to - range - kRange.size()), most = said.substr(to + kTo.size());
  const bool is_bounded = std::strtod(most.c_str(), nullptr) < kUnbounded;
  const std::string wanted = "a number from " + short_number(least);
  return no_value_of(name, value, wanted + (is_bounded ? " to " + short_number(most) : " on"));
}

/// CLI11 says "--verify: true not in {sites,off}", and "--memory-limit: lots unit not recognized" with all units that there
/// are.
tl::unexpected<Error> refused_value(const CLI::App& app, const std::string& said) {
  const size_t colon = said.find(": "), choices = said.find(" not in {"), units = said.find(" unit not recognized");
  const size_t end = std::min(choices, units);
  const std::string name = said.substr(0, colon);
  const CLI::Option* option = app.get_option_no_throw(name);
  if (colon != std::string::npos)
    if (auto refused = out_of_range(name, said.substr(colon + 2))) return *std::move(refused);
  if (option == nullptr || end == std::string::npos) return usage_error(said, see_help(app));
  return no_value_of(name, said.substr(colon + 2, end - colon - 2),
                     end == choices ? value_label(*option) : "a size, as 512MB, 8GB or 1GiB");
}

/// No option and no argument takes an empty text, which a script makes of a variable that is not set.
Status check_no_value_is_empty(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options())
    if (std::ranges::any_of(option->results(), &std::string::empty))
      return no_value_of(name_of(*option), "", value_label(*option));
  return {};
}

/// Something that is required is missing; if there are words that APP does not know, they are the cause.
tl::unexpected<Error> missing(const CLI::App& app, const std::string& said) {
  const std::vector<std::string> unknown = app.remaining();
  const auto option = std::ranges::find_if(unknown, is_option);
  if (option == unknown.end()) return usage_error(said, see_help(app));
  return usage_error("there is no option " + *option, remedy_for(app, {*option}));
}

}  // namespace

Expected<bool> parse(CLI::App& app, const Arguments& arguments) {
  Arguments last_first(arguments.rbegin(), arguments.rend());
  try {
    app.parse(std::move(last_first));
    ATTN_OPT_CHECK(check_no_value_is_empty(app));
    return true;
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return false;
  } catch (const CLI::CallForVersion& version) {
    std::printf("%s\n", version.what());
    return false;
  } catch (const CLI::ExtrasError& error) {
    return usage_error(error.what(), remedy_for(app, app.remaining()));
  } catch (const CLI::ConversionError& error) {
    return wrong_value(app, error.what());
  } catch (const CLI::ValidationError& error) {
    return refused_value(app, error.what());
  } catch (const CLI::RequiredError& error) {
    return missing(app, error.what());
  } catch (const CLI::ParseError& error) {
    return usage_error(error.what(), see_help(app));
  }
}

void declare_verbosity(CLI::App& app, Verbosity& verbosity) {
  const bool matches = app.get_option_no_throw("--only") != nullptr;
  const std::string more = matches ? "; -vv also says why each pattern does not match at each node" : "";
  auto* verbose = app.add_flag("-v,--verbose", verbosity.verbose, "Increase verbosity" + more);
  app.add_flag("-q,--quiet", verbosity.quiet, "Print errors only")->excludes(verbose);
}

void set_up_log(const Verbosity& verbosity) {
  auto logger = std::make_shared<spdlog::logger>("attn-opt", std::make_shared<spdlog::sinks::stderr_sink_mt>());
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

void takes_size(CLI::Option& option) {
  option.transform(CLI::AsSizeValue(false));
  // Which takes -1 for the largest number that there is. What is declared last is asked first.
  const auto refuse_negative = [](std::string& text) { return text.starts_with('-') ? text + " unit not recognized" : ""; };
  option.transform(CLI::Validator(refuse_negative, ""));
}

}  // namespace attn_opt
