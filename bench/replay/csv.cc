// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/csv.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>

#include "base/file.h"
#include "base/text.h"

namespace berth::replay {
namespace {

// Takes a table apart, record by record. Doubled quotes become one in the text itself, so that
// every field is a view into it.
class RecordReader {
 public:
  // Requires: the text outlives the reader and the fields.
  explicit RecordReader(std::string& text) : text_(text) {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (text_.starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
    const std::string_view rest(text_);
    const std::size_t header = rest.find_first_not_of("\r\n", at_);
    if (header == rest.npos) return;
    const std::string_view line = rest.substr(header, rest.find('\n', header) - header);
    for (const char separator : {',', ';', '\t'}) {
      if (line.find(separator) == line.npos) continue;
      separator_ = separator;
      break;
    }
  }

  // The fields of the next record that is no empty line; none at the end. Error: without the place.
  Result<std::vector<std::string_view>> Next() {
    while (at_ < text_.size() && SkipLineEnd()) continue;
    line_ = lines_;
    std::vector<std::string_view> fields;
    if (at_ == text_.size()) return fields;
    while (true) {
      BERTH_TRY(const std::string_view field, text_[at_] == '"' ? Quoted() : Plain());
      fields.push_back(field);
      if (at_ == text_.size() || SkipLineEnd()) return fields;
      ++at_;  // the separator
      if (at_ < text_.size()) continue;
      fields.emplace_back();
      return fields;
    }
  }

  // Where the last record begins, or its error is.
  [[nodiscard]] std::size_t line() const { return line_; }

 private:
  bool SkipLineEnd() {
    std::size_t end = at_;
    if (text_[end] == '\r') ++end;
    if (end < text_.size() && text_[end] != '\n') return false;
    at_ = std::min(end + 1, text_.size());
    ++lines_;
    return true;
  }

  std::string_view Plain() {
    const std::size_t begin = at_;
    at_ = std::min(text_.find_first_of(std::string{separator_, '\n'}, at_), text_.size());
    const bool line_ends = at_ == text_.size() || text_[at_] == '\n';
    if (line_ends && at_ > begin && text_[at_ - 1] == '\r') --at_;
    return std::string_view(text_).substr(begin, at_ - begin);
  }

  Result<std::string_view> Quoted() {
    const std::size_t begin = ++at_;
    std::size_t end = begin;
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == '"') {
        if (at_ + 1 == text_.size() || text_[at_ + 1] != '"') break;
        ++at_;
      }
      if (text_[at_] == '\n') ++lines_;
      text_[end++] = text_[at_];
    }
    if (at_ == text_.size()) return Invalid("want a closing quote, got the end of the file");
    ++at_;
    const std::string_view after = std::string_view(text_).substr(at_);
    if (after.empty() || after.front() == separator_ || after.front() == '\n' || after == "\r" ||
        after.starts_with("\r\n")) {
      return std::string_view(text_).substr(begin, end - begin);
    }
    line_ = lines_;
    return Invalid("want a separator or the end of the line after a closing quote, got \"" +
                   std::string(after.substr(0, std::min(after.find('\n'), std::size_t{20}))) +
                   "\"");
  }

  std::string& text_;
  std::size_t at_ = 0;
  std::size_t lines_ = 1;  // the one that at_ is on
  std::size_t line_ = 1;
  char separator_ = ',';
};

// The whole number that a text with a point or an exponent stands for.
std::optional<std::int64_t> WholeFloat(std::string_view text) {
  constexpr double kMostExact = 9007199254740992.0;  // 2^53
  if (text.find_first_of(".eE") == text.npos) return std::nullopt;
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc() || stop != end || std::trunc(value) != value) return std::nullopt;
  if (std::abs(value) > kMostExact) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

// For each column of the table its number in the file: the required ones, then the others that have
// a name. Error: without the place.
Result<std::vector<std::size_t>> ColumnOrder(const std::vector<std::string_view>& header,
                                             std::span<const std::string_view> required) {
  std::vector<std::size_t> order;
  for (const std::string_view name : required) {
    const auto found = std::ranges::find(header, name);
    if (found == header.end()) {
      return Invalid("want the columns " + Join(required, ",") + ", got " +
                     Join(header, ",").substr(0, 200));
    }
    order.push_back(static_cast<std::size_t>(found - header.begin()));
  }
  for (std::size_t i = 0; i < header.size(); ++i) {
    if (header[i].empty()) continue;
    if (std::ranges::count(header, header[i]) > 1) {
      return Invalid("want every column once, got \"" + std::string(header[i]) + "\" twice");
    }
    if (std::ranges::count(required, header[i]) == 0) order.push_back(i);
  }
  return order;
}

}  // namespace

Result<std::string> ReadTextFile(const std::string& path) {
  const gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) return Fail(Errc::kNotFound, path + ": " + std::strerror(errno));
  std::string text;
  std::array<char, 1 << 16> buffer;
  int got = 0;
  while ((got = gzread(file, buffer.data(), buffer.size())) > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(got));
    if (text.size() > kMostTextBytes) break;
  }
  int code = Z_OK;
  const std::string problem = gzerror(file, &code);
  gzclose(file);
  if (text.size() > kMostTextBytes) return tl::unexpected(TooLarge(path, kMostTextBytes));
  // gzread does not fail on a truncated file; only its error code says so (Z_BUF_ERROR).
  if (got < 0 || code != Z_OK) return Invalid(path + ": cannot be read: " + problem);
  return text;
}

std::vector<std::string_view> SplitFields(std::string_view line, char separator) {
  std::vector<std::string_view> fields;
  for (std::size_t at = 0;;) {
    const std::size_t end = line.find(separator, at);
    fields.push_back(line.substr(at, end - at));
    if (end == std::string_view::npos) return fields;
    at = end + 1;
  }
}

std::vector<NumberedLine> NumberedLines(std::string_view text) {
  std::vector<NumberedLine> lines;
  std::size_t number = 0;
  for (std::string_view line : SplitFields(text, '\n')) {
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) lines.push_back({line, number});
  }
  return lines;
}

std::vector<std::string_view> SplitLines(std::string_view text) {
  std::vector<std::string_view> lines;
  for (const NumberedLine& line : NumberedLines(text)) lines.push_back(line.text);
  return lines;
}

std::string CsvField(std::string_view text) {
  if (text.find_first_of(",;\t\"\r\n") == text.npos) return std::string(text);
  std::string field = "\"";
  for (const char c : text) {
    if (c == '"') field += '"';
    field += c;
  }
  return field + '"';
}

std::vector<std::string> CsvHeader(std::string text) {
  const auto header = RecordReader(text).Next();
  if (!header) return {};
  return {header->begin(), header->end()};
}

Result<CsvTable> CsvTable::Read(const std::string& path,
                                std::span<const std::string_view> required) {
  BERTH_TRY(std::string text, ReadTextFile(path));
  return Parse(path, std::move(text), required, 0);
}

Result<CsvTable> CsvTable::ReadWithoutHeader(const std::string& path,
                                             std::span<const std::string_view> columns) {
  BERTH_TRY(std::string text, ReadTextFile(path));
  const std::string header = Join(columns, ",");
  if (text.starts_with(header)) return Parse(path, std::move(text), columns, 0);
  text.insert(0, header + "\n");
  return Parse(path, std::move(text), columns, 1);
}

Result<CsvTable> CsvTable::Parse(const std::string& path, std::string text,
                                 std::span<const std::string_view> required, std::size_t added) {
  CsvTable table;
  table.path_ = path;
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    return Invalid(path + ": want UTF-8, got UTF-16");
  }
  table.text_ = std::make_unique<std::string>(std::move(text));
  RecordReader reader(*table.text_);
  const auto within = [&](Error&& error) {
    return tl::unexpected(
        std::move(error).Within(path + ":" + std::to_string(reader.line() - added)));
  };
  auto record = reader.Next();
  if (!record) return within(std::move(record).error());
  if (record->empty())
    return Invalid(path + ": want the columns " + Join(required, ",") + ", got an empty file");
  auto order = ColumnOrder(*record, required);
  if (!order) return within(std::move(order).error());
  for (const std::size_t column : *order) table.header_.emplace_back((*record)[column]);
  for (const std::size_t width = record->size();;) {
    record = reader.Next();
    if (!record) return within(std::move(record).error());
    if (record->empty()) return table;
    if (record->size() != width) {
      return within({Errc::kInvalidArgument, "want " + std::to_string(width) + " fields, got " +
                                                 std::to_string(record->size())});
    }
    for (const std::size_t column : *order) table.fields_.push_back((*record)[column]);
    table.line_of_row_.push_back(reader.line() - added);
  }
}

std::size_t CsvTable::ColumnNamed(std::string_view name) const {
  const auto found = std::ranges::find(header_, name);
  return found == header_.end() ? npos : static_cast<std::size_t>(found - header_.begin());
}

Result<std::int64_t> CsvTable::Integer(std::size_t row, std::size_t column, std::int64_t low,
                                       std::int64_t high) const {
  const std::string_view text = at(row, column);
  if (const auto whole = WholeFloat(text); whole && *whole >= low && *whole <= high) return *whole;
  auto number = ParseInt(text, low, high);
  if (!number) {
    return tl::unexpected(
        std::move(number).error().Within(PlaceOf(row) + ": column " + header_[column]));
  }
  return number;
}

std::string CsvTable::PlaceOf(std::size_t row) const {
  return path_ + ":" + std::to_string(line_of_row_[row]);
}

}  // namespace berth::replay
