// SPDX-License-Identifier: Apache-2.0
#include "config/print.h"

#include <yaml-cpp/yaml.h>

#include <array>
#include <charconv>
#include <optional>
#include <type_traits>

#include "config/describe.h"

namespace berth {
namespace {

// The shortest text that reads back to the same number.
std::string Shortest(double number) {
  std::array<char, 32> digits;
  const auto [end, code] = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  return code == std::errc() ? std::string(digits.data(), end) : "0";
}

// The visitor of Describe that prints.
class Printer {
 public:
  Printer(YAML::Emitter& out, bool constants) : out_(out), constants_(constants) {}

  template <class T>
  void Field(const char* key, const T& value) {
    out_ << YAML::Key << key << YAML::Value << value;
  }

  void Field(const char* key, const std::string& value, AnyText, const char*) { Field(key, value); }
  void Field(const char* key, const std::vector<std::string>& value, TextList form, const char*) {
    if (form.optional && value.empty()) return;
    out_ << YAML::Key << key << YAML::Value << YAML::Flow << value;
  }
  void Field(const char* key, bool value, TrueOrFalse, const char*) { Field(key, value); }
  template <class T>
  void Field(const char* key, T value, Integers form, const char*) {
    if (!form.optional || value != 0) Field(key, value);
  }
  void Field(const char* key, double value, Numbers, const char*) { Field(key, Shortest(value)); }
  void Field(const char* key, double value, NumbersAboveZero, const char*) {
    Field(key, Shortest(value));
  }
  void Field(const char* key, std::int64_t value, MilliQuantities, const char*) {
    Field(key, std::to_string(value) + "m");
  }
  template <class Enum>
  void Field(const char* key, Enum value, Words words, const char*) {
    Field(key, std::string(WordOf(words.words, value)));
  }
  void Field(const char* key, const std::string& value, Words, const char*) { Field(key, value); }
  template <class T, class Form>
  void Field(const char* key, const std::optional<T>& value, Optional<Form> form,
             const char* meaning) {
    if (value) Field(key, *value, form.form, meaning);
  }

  template <class T, class Form>
  void Field(const char* key, const T& value, Constant<Form, T> constant, const char* meaning) {
    if (constants_) Field(key, value, constant.form, meaning);
  }

  template <class T>
  void Group(const char* key, T& settings, const char*) {
    if (std::is_same_v<T, LearningParameters> && !constants_) return;  // it has nothing else
    out_ << YAML::Key << key << YAML::Value << YAML::BeginMap;
    Describe(*this, settings);
    out_ << YAML::EndMap;
  }

  template <class T>
  void List(const char* key, std::vector<T>& elements, const char*) {
    out_ << YAML::Key << key << YAML::Value << YAML::BeginSeq;
    for (T& element : elements) {
      out_ << YAML::BeginMap;
      Describe(*this, element);
      out_ << YAML::EndMap;
    }
    out_ << YAML::EndSeq;
  }

 private:
  YAML::Emitter& out_;
  const bool constants_;
};

std::string Print(Config config, bool constants) {
  YAML::Emitter out;
  out << YAML::BeginMap;
  Printer printer(out, constants);
  printer.Field("apiVersion", "berth.dev/v1alpha1");
  printer.Field("kind", "BerthConfiguration");
  Describe(printer, config);
  out << YAML::EndMap;
  return std::string(out.c_str()) + "\n";
}

}  // namespace

std::string PrintConfig(const Config& config) { return Print(config, false); }

std::string PrintWithConstants(const Config& config) { return Print(config, true); }

}  // namespace berth
