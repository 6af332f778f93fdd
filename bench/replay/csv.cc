// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/csv.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/file.h"
#include "base/number.h"
#include "base/text.h"

namespace berth::replay {

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

Result<CsvTable> CsvTable::Read(const std::string& path,
                                std::span<const std::string_view> required) {
  CsvTable table;
  table.path_ = path;
  BERTH_TRY(std::string text, ReadTextFile(path));
  table.text_ = std::make_unique<std::string>(std::move(text));
  for (const auto& [line, line_number] : NumberedLines(*table.text_)) {
    std::vector<std::string_view> fields = SplitFields(line, ',');
    if (table.header_.empty()) {
      if (fields.size() < required.size() ||
          !std::equal(required.begin(), required.end(), fields.begin())) {
        return Invalid(path + ":" + std::to_string(line_number) + ": want the columns " +
                       Join(required, ",") + ", got " + std::string(line.substr(0, 200)));
      }
      table.header_.assign(fields.begin(), fields.end());
      continue;
    }
    if (fields.size() != table.header_.size()) {
      return Invalid(path + ":" + std::to_string(line_number) + ": want " +
                     std::to_string(table.header_.size()) + " fields, got " +
                     std::to_string(fields.size()));
    }
    table.rows_.push_back(std::move(fields));
    table.line_of_row_.push_back(line_number);
  }
  if (table.header_.empty())
    return Invalid(path + ": want the columns " + Join(required, ",") + ", got an empty file");
  return table;
}

std::size_t CsvTable::ColumnNamed(std::string_view name) const {
  const auto found = std::ranges::find(header_, name);
  return found == header_.end() ? npos : static_cast<std::size_t>(found - header_.begin());
}

Result<std::int64_t> CsvTable::Integer(std::size_t row, std::size_t column, std::int64_t low,
                                       std::int64_t high) const {
  auto number = ParseInt(at(row, column), low, high);
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
