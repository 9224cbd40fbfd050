#include "src/cli/cases/case_file.h"

#include <algorithm>
#include <fstream>
#include <map>

#include "src/cli/cases/case_words.h"
#include "src/cli/options/command_line.h"
#include "src/cli/options/optimize_arguments.h"

namespace attn_opt {
namespace {

using P = onnx::TensorProto;

namespace fs = std::filesystem;

/// Reads the header, line by line, into a Case.
class HeaderReader {
 public:
  HeaderReader(Case& result, const CasePatterns& patterns) : case_(result), patterns_(patterns) {}

  static bool is_key(const std::string& word) { return readers().contains(word); }

  Status read_line(const std::string& key, const std::string& text) {
    const auto reader = readers().find(key);
    if (reader != readers().end()) return (this->*reader->second)(text);
    std::string known;
    for (const auto& [name, unused] : readers()) known += (known.empty() ? "" : ", ") + name;
    return bad_word("'" + key + "' is no key of a case's header", "there are " + known);
  }

  Status finish() {
    if (case_.name.empty()) return bad_word("no CASE line names the case");
    if (!fused_is_said_) return bad_word("no EXPECT line says fused=N");
    return parse_run();
  }

 private:
  using Reader = Status (HeaderReader::*)(const std::string& text);
  static const std::map<std::string, Reader>& readers() {
    static const std::map<std::string, Reader> kReaders = {
        {"CASE", &HeaderReader::read_name},     {"SOURCE", &HeaderReader::read_source}, {"RUN", &HeaderReader::read_run},
        {"EXPECT", &HeaderReader::read_expect}, {"FEED", &HeaderReader::read_feed},     {"VERIFY", &HeaderReader::read_verify},
        {"AFTER", &HeaderReader::read_golden}};
    return kReaders;
  }

  Status read_name(const std::string& text) {
    const auto words = split_words(text);
    if (words.size() != 1 || !case_.name.empty()) return bad_word("CASE takes one name, once");
    case_.name = words.front();
    return {};
  }

  Status read_source(const std::string& text) {
    case_.source += (case_.source.empty() ? "" : "\n") + text;
    return {};
  }

  Status read_golden(const std::string& text) {
    const auto words = split_words(text);
    if (words.size() != 1 || !words.front().ends_with(kGoldenEnding)) {
      return bad_word("AFTER takes the name of one file that ends in " + std::string(kGoldenEnding));
    }
    case_.golden = case_.path.parent_path() / words.front();
    return {};
  }

  Status read_run(const std::string& text) {
    const auto words = split_words(text);
    run_words_.insert(run_words_.end(), words.begin(), words.end());
    return {};
  }

  Status parse_run() {
    if (!run_words_.empty() && run_words_.front() == "attn-opt") run_words_.erase(run_words_.begin());
    CLI::App app("", "RUN");
    app.set_help_flag();
    OptimizeArguments arguments;
    declare_optimize_options(app, arguments);
    if (const auto parsed = parse(app, run_words_); !parsed) return bad_word("RUN: " + parsed.error().what);
    for (std::string& folder : arguments.patterns) folder = (case_.path.parent_path() / folder).string();
    arguments.patterns.insert(arguments.patterns.begin(), patterns_.rules.begin(), patterns_.rules.end());
    arguments.more_patterns = patterns_.others;
    arguments.more_rewrites = patterns_.rewrites;
    ATTN_OPT_TRY(case_.options, to_options(arguments));
    return {};
  }

  Status read_expect(const std::string& text) {
    for (const std::string& word : split_words(text)) {
      ATTN_OPT_TRY(const Setting setting, parse_setting(word));
      ATTN_OPT_CHECK(add_expectation(setting, case_.expect));
      fused_is_said_ = fused_is_said_ || setting.key == "fused";
    }
    return {};
  }

  Status read_feed(const std::string& text) {
    for (const std::string& word : split_words(text)) {
      ATTN_OPT_TRY(Setting setting, parse_setting(word));
      if (const auto size = parse_integer(setting.value); size && *size >= 0) {
        case_.draw.sizes[setting.key] = *size;
        continue;
      }
      ATTN_OPT_TRY(Fill fill, parse_fill(setting.value));
      case_.draw.fills[setting.key] = std::move(fill);
    }
    return {};
  }

  Status read_verify(const std::string& text) {
    const auto words = split_words(text);
    if (words == std::vector<std::string>{"off"}) {
      case_.verify.reset();
      return {};
    }
    if (!case_.verify) return bad_word("VERIFY is off already");
    for (const std::string& word : words) {
      if (!set_output_check(word, *case_.verify)) {
        return bad_word("VERIFY does not know '" + word + "'",
                        "it takes off, f32, f16, bf16, f64, rtol=R, atol=A, nan=forbid or nan=equal");
      }
    }
    return {};
  }

  /// False: there is no such word.
  static bool set_output_check(const std::string& word, OutputCheck& check) {
    static const std::map<std::string, DataType> kTypes = {{"f32", P::FLOAT}, {"f16", P::FLOAT16}, {"bf16", P::BFLOAT16}};
    const size_t equals = word.find('=');
    const auto number = equals == std::string::npos ? std::nullopt : parse_real(word.substr(equals + 1));
    if (const auto type = kTypes.find(word); type != kTypes.end())
      check.type = type->second;
    else if (word == "f64")
      check.compute_f64 = true;
    else if (word == "nan=forbid" || word == "nan=equal")
      check.forbid_nan = word == "nan=forbid";
    else if (number && word.starts_with("rtol="))
      check.rtol = number;
    else if (number && word.starts_with("atol="))
      check.atol = number;
    else
      return false;
    return true;
  }

  Case& case_;
  const CasePatterns& patterns_;
  std::vector<std::string> run_words_;
  bool fused_is_said_ = false;
};

/// Reads the comments above the model, and makes sure that no line of a header hides below.
Status read_header(std::istream& stream, const CasePatterns& patterns, Case& result) {
  HeaderReader header(result, patterns);
  bool above_model = true;
  int number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    const auto located = [&](const Error& error) {
      return fail(error.code, result.path.string() + ":" + std::to_string(number), error.what, error.remedy);
    };
    const size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string::npos) continue;
    if (line[begin] != '#') {
      above_model = false;
      continue;
    }
    const size_t key_begin = std::min(line.find_first_not_of(" \t#", begin), line.size());
    const size_t key_end = std::min(line.find_first_of(" \t\r", key_begin), line.size());
    const std::string key = line.substr(key_begin, key_end - key_begin);
    if (!above_model) {
      if (HeaderReader::is_key(key)) return located({ErrorCode::kUsage, "", "a line of the header is not at the top", {}});
      continue;
    }
    const size_t text_begin = std::min(line.find_first_not_of(" \t", key_end), line.size());
    if (auto read = key.empty() ? Status{} : header.read_line(key, line.substr(text_begin)); !read) {
      return located(read.error());
    }
  }
  if (auto finished = header.finish(); !finished) {
    return fail(finished.error().code, result.path.string(), finished.error().what, finished.error().remedy);
  }
  return {};
}

}  // namespace

Expected<Case> read_case(const fs::path& path, const CasePatterns& patterns) {
  std::ifstream stream(path);
  if (!stream) return fail(ErrorCode::kInvalidInput, path.string(), "cannot be read");
  Case result;
  result.path = path;
  ATTN_OPT_CHECK(read_header(stream, patterns, result));
  return result;
}

}  // namespace attn_opt
