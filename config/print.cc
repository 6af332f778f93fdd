// SPDX-License-Identifier: Apache-2.0
#include "config/config.h"

#include <yaml-cpp/yaml.h>
#include <array>
#include <charconv>
#include <optional>
#include <sstream>
#include <string_view>

#include "base/text.h"
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
  explicit Printer(YAML::Emitter& out) : out_(out) {}

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

  template <class T>
  void Group(const char* key, T& settings, const char*) {
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
};

// The texts here are our own: quotes and backslashes are all that is to be escaped.
std::string JsonText(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

template <class T>
std::string NumberText(T number) {
  std::ostringstream text;
  text << number;
  return text.str();
}

// The visitor of Describe that writes the properties of one mapping.
class SchemaWriter {
 public:
  explicit SchemaWriter(std::string indent) : indent_(std::move(indent)) {}

  void Field(const char* key, const std::string& value, AnyText, const char* meaning) {
    Property(key, R"("type": "string")", JsonText(value), meaning);
  }
  void Field(const char* key, const std::vector<std::string>& value, TextList,
             const char* meaning) {
    Property(key, R"("type": "array", "items": {"type": "string"})",
             "[" + Join(value, ", ", JsonText) + "]", meaning);
  }
  void Field(const char* key, bool value, TrueOrFalse, const char* meaning) {
    Property(key, R"("type": "boolean")", value ? "true" : "false", meaning);
  }
  template <class T>
  void Field(const char* key, T value, Integers range, const char* meaning) {
    Property(key, R"("type": "integer", )" + Range(range.low, range.high), NumberText(value),
             meaning);
  }
  void Field(const char* key, double value, Numbers range, const char* meaning) {
    Property(key, R"("type": "number", )" + Range(range.low, range.high), NumberText(value),
             meaning);
  }
  template <class Enum>
  void Field(const char* key, Enum value, Words words, const char* meaning) {
    OneOf(key, std::string(WordOf(words.words, value)), words, meaning);
  }
  void Field(const char* key, const std::string& value, Words words, const char* meaning) {
    OneOf(key, value, words, meaning);
  }
  template <class T, class Form>
  void Field(const char* key, const std::optional<T>&, Optional<Form> form, const char* meaning) {
    has_default_ = false;
    Field(key, T(), form.form, meaning);
    has_default_ = true;
  }

  template <class T>
  void Group(const char* key, T& settings, const char* meaning) {
    SchemaWriter inner(indent_ + "  ");
    Describe(inner, settings);
    Property(key, inner.Mapping(), "", meaning);
  }

  // An element of the list of levels may also be what only the reader knows (load.cc).
  template <class T>
  void List(const char* key, const std::vector<T>&, const char* meaning) {
    SchemaWriter inner(indent_ + "    ");
    T element;
    Describe(inner, element);
    if constexpr (std::is_same_v<T, TopologyLevel>) {
      inner.Property("nodeLabel", R"("type": "string")", "", "or one node label");
      inner.Property(
          "preset",
          R"("type": "string", "enum": [)" +
              Join(TopologyPresets(), ", ", [](const auto& p) { return JsonText(p.name); }) + "]",
          "", "or several levels at once, with neither name nor labels");
    }
    const std::string in = "\n" + indent_ + "  ";
    Property(key, "\"type\": \"array\"," + in + "\"items\": {" + inner.Mapping() + "}", "",
             meaning);
  }

  void Property(std::string_view key, const std::string& form, const std::string& value,
                std::string_view meaning) {
    properties_ += properties_.empty() ? "" : ",";
    properties_ += "\n" + indent_ + JsonText(key) + ": {" + form;
    if (has_default_ && !value.empty()) properties_ += ", \"default\": " + value;
    if (!meaning.empty()) properties_ += ", \"description\": " + JsonText(meaning);
    properties_ += "}";
  }

  // Of the mapping with all that was visited: without its braces.
  [[nodiscard]] std::string Mapping() const {
    return "\"type\": \"object\", \"additionalProperties\": false, \"properties\": {" +
           properties_ + "\n" + indent_.substr(2) + "}";
  }

 private:
  template <class T>
  static std::string Range(T low, T high) {
    return "\"minimum\": " + NumberText(low) + ", \"maximum\": " + NumberText(high);
  }

  void OneOf(const char* key, const std::string& value, Words words, const char* meaning) {
    Property(key, R"("type": "string", "enum": [)" + Join(words.words, ", ", JsonText) + "]",
             JsonText(value), meaning);
  }

  const std::string indent_;
  std::string properties_;
  bool has_default_ = true;
};

}  // namespace

std::string PrintConfig(Config config) {
  YAML::Emitter out;
  out << YAML::BeginMap;
  Printer printer(out);
  printer.Field("apiVersion", "berth.dev/v1alpha1");
  printer.Field("kind", "BerthConfiguration");
  Describe(printer, config);
  out << YAML::EndMap;
  return std::string(out.c_str()) + "\n";
}

std::string ConfigSchema() {
  SchemaWriter writer("    ");
  writer.Property("apiVersion", R"("const": "berth.dev/v1alpha1")", "", "");
  writer.Property("kind", R"("const": "BerthConfiguration")", "", "");
  Config config = DefaultConfig();
  Describe(writer, config);
  return "{\n  \"$schema\": \"http://json-schema.org/draft-07/schema#\",\n"
         "  \"title\": \"BerthConfiguration\",\n  " +
         writer.Mapping() + "\n}\n";
}

}  // namespace berth
