// SPDX-License-Identifier: Apache-2.0
//
// Reading text files, plain or gzipped, and tables as RFC 4180 describes them and pandas, Excel and
// LibreOffice write them.
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

// The text as a field of a table: in quotes where it needs them.
std::string CsvField(std::string_view text);

// The names of a table's columns, as CsvTable reads them; none where it cannot be read.
std::vector<std::string> CsvHeader(std::string text);

// A table with a header line. Fields may be quoted, and then have separators, line ends and doubled
// quotes in them. The separator is the first of comma, semicolon and tab that the header has. A
// byte order mark, empty lines and columns without a name (an index of pandas) are left out.
class CsvTable {
 public:
  // Columns are numbered as in `required`; the file may have them in any order, and others. Error:
  // kInvalidArgument "FILE:LINE: want ..., got ...".
  static Result<CsvTable> Read(const std::string& path, std::span<const std::string_view> required);
  // A table of these columns in this order, whose header line somebody may have added or not.
  static Result<CsvTable> ReadWithoutHeader(const std::string& path,
                                            std::span<const std::string_view> columns);

  [[nodiscard]] std::size_t columns() const { return header_.size(); }
  [[nodiscard]] std::size_t rows() const { return line_of_row_.size(); }
  [[nodiscard]] std::string_view at(std::size_t row, std::size_t column) const {
    return fields_[row * header_.size() + column];
  }
  // The index of a column, or npos.
  [[nodiscard]] std::size_t ColumnNamed(std::string_view name) const;
  static constexpr std::size_t npos = static_cast<std::size_t>(-1);

  // A whole number in [low, high], also as a program writes it that takes it for a float ("2.0",
  // "1e3"); the error names file, line and column.
  [[nodiscard]] Result<std::int64_t> Integer(std::size_t row, std::size_t column, std::int64_t low,
                                             std::int64_t high) const;
  // "FILE:LINE" of a row: the line on which it begins.
  [[nodiscard]] std::string PlaceOf(std::size_t row) const;

 private:
  // added: lines that are in front of what the file has.
  static Result<CsvTable> Parse(const std::string& path, std::string text,
                                std::span<const std::string_view> required, std::size_t added);

  std::string path_;
  std::unique_ptr<std::string> text_;  // on the heap: the views below survive a move
  std::vector<std::string> header_;
  std::vector<std::string_view> fields_;  // row after row, into *text_
  std::vector<std::size_t> line_of_row_;
};

}  // namespace berth::replay
