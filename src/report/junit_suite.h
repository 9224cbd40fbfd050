// JUnit XML of tests of any kind.
#pragma once

#include <string>

namespace attn_opt {

/// Begin and end of a file; suites stand between them.
std::string junit_begin();
std::string junit_end();

class JunitSuite {
 public:
  explicit JunitSuite(std::string name) : name_(std::move(name)) {}

  void pass(const std::string& test, double seconds, const std::string& output = {});
  void skip(const std::string& test, double seconds, const std::string& type, const std::string& message);
  void failure(const std::string& test, double seconds, const std::string& type, const std::string& message);
  void error(const std::string& test, double seconds, const std::string& type, const std::string& message);

  /// SECONDS: of the whole suite.
  std::string xml(double seconds) const;

 private:
  void add(const std::string& test, double seconds, const std::string& inside);

  std::string name_, tests_;
  int count_ = 0, failures_ = 0, errors_ = 0, skipped_ = 0;
};

}  // namespace attn_opt
