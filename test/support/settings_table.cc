// SPDX-License-Identifier: Apache-2.0
#include "test/support/settings_table.h"

#include <optional>
#include <sstream>

#include "base/text.h"
#include "config/describe.h"

namespace berth::test {
namespace {

// The visitor of Describe that writes one row a setting, under the path of the mapping it is in.
class TableWriter {
 public:
  TableWriter(std::ostringstream& out, std::string path) : out_(out), path_(std::move(path)) {}

  void Field(const char* key, const std::string& value, AnyText, const char* meaning) {
    Row(key, "text", value, meaning);
  }
  void Field(const char* key, const std::vector<std::string>&, TextList, const char* meaning) {
    Row(key, "list of texts", "", meaning);
  }
  void Field(const char* key, bool value, TrueOrFalse, const char* meaning) {
    Row(key, "true, false", value ? "true" : "false", meaning);
  }
  template <class T>
  void Field(const char* key, T value, Integers range, const char* meaning) {
    Row(key, Text(range.low) + " to " + Text(range.high), Text(value), meaning);
  }
  void Field(const char* key, double value, Numbers range, const char* meaning) {
    Row(key, "number, " + Text(range.low) + " to " + Text(range.high), Text(value), meaning);
  }
  template <class Enum>
  void Field(const char* key, Enum value, Words words, const char* meaning) {
    Row(key, Join(words.words, ", "), WordOf(words.words, value), meaning);
  }
  void Field(const char* key, const std::string& value, Words words, const char* meaning) {
    Row(key, Join(words.words, ", "), value, meaning);
  }
  template <class T, class Form>
  void Field(const char* key, const std::optional<T>&, Optional<Form> form, const char* meaning) {
    has_default_ = false;
    Field(key, T(), form.form, meaning);
    has_default_ = true;
  }

  template <class T>
  void Group(const char* key, T& settings, const char* meaning) {
    if (*meaning != '\0') Row(key, "mapping", "", meaning);
    TableWriter inner(out_, path_ + key + ".");
    Describe(inner, settings);
  }

  // Shows the number of elements of the default; below it, the defaults of an element's own fields.
  template <class T>
  void List(const char* key, const std::vector<T>& elements, const char* meaning) {
    Row(key, "list", elements.empty() ? "" : Text(elements.size()) + " entries", meaning);
    TableWriter inner(out_, path_ + key + "[].");
    T element;
    Describe(inner, element);
  }

 private:
  template <class T>
  static std::string Text(T number) {
    std::ostringstream text;
    text << number;
    return text.str();
  }

  void Row(const char* key, std::string_view form, std::string_view value, const char* meaning) {
    out_ << "| `" << path_ << key << "` | " << form << " | ";
    if (has_default_ && !value.empty()) out_ << '`' << value << "` ";
    out_ << "| " << meaning << " |\n";
  }

  std::ostringstream& out_;
  const std::string path_;
  bool has_default_ = true;
};

}  // namespace

std::string SettingsTable() {
  std::ostringstream out;
  out << "| Setting | Form | Default | Meaning |\n| --- | --- | --- | --- |\n";
  TableWriter writer(out, "");
  Config config = DefaultConfig();
  Describe(writer, config);
  return out.str();
}

}  // namespace berth::test
