// SPDX-License-Identifier: Apache-2.0
//
// Reading text files, plain or gzipped, and simple comma-separated tables (no quoting: the traces
// have none).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace berth::replay {

// The whole file, unzipped where it is gzipped. Error: kNotFound or kInvalidArgument with the path,
// also where the text is larger than kMostTextBytes (/dev/zero; a gzip bomb).
inline constexpr std::size_t kMostTextBytes = std::size_t{256} << 20;
Result<std::string> ReadTextFile(const std::string& path);

// A line without its end ("\n" or "\r\n"), and its number in the file, counted from 1.
struct NumberedLine {
  std::string_view text;
  std::size_t number;
};

// The lines of a text, empty ones left out.
std::vector<NumberedLine> NumberedLines(std::string_view text);
std::vector<std::string_view> SplitLines(std::string_view text);

std::vector<std::string_view> SplitFields(std::string_view line, char separator);

// A table with a header line.
class CsvTable {
 public:
  // Reads the file and checks that its header begins with `required`; columns after those may be
  // missing or be others. Error: kInvalidArgument "FILE:LINE: want ..., got ...".
  static Result<CsvTable> Read(const std::string& path, std::span<const std::string_view> required);

  [[nodiscard]] std::size_t rows() const { return rows_.size(); }
  [[nodiscard]] std::string_view at(std::size_t row, std::size_t column) const {
    return rows_[row][column];
  }
  // The index of a column, or npos.
  [[nodiscard]] std::size_t ColumnNamed(std::string_view name) const;
  static constexpr std::size_t npos = static_cast<std::size_t>(-1);

  // A whole number in [low, high]; the error names file, line and column.
  [[nodiscard]] Result<std::int64_t> Integer(std::size_t row, std::size_t column, std::int64_t low,
                                             std::int64_t high) const;
  // "FILE:LINE" of a row.
  [[nodiscard]] std::string PlaceOf(std::size_t row) const;

 private:
  std::string path_;
  std::unique_ptr<std::string> text_;  // on the heap: the views below survive a move
  std::vector<std::string> header_;
  std::vector<std::vector<std::string_view>> rows_;  // into *text_
  std::vector<std::size_t> line_of_row_;
};

}  // namespace berth::replay
