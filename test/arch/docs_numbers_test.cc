// SPDX-License-Identifier: Apache-2.0
//
// Numbers that documents state are those of the code, by docs_numbers.txt.
#include <algorithm>
#include <cctype>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/build_paths.h"
#include "test/support/read_text.h"

namespace berth::test::docs_numbers_test {
namespace {

// With one blank where there are several, or the end of a line.
std::string OneLine(const std::string& text) {
  std::string line;
  for (const char c : text) {
    const bool blank = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (!blank) {
      line += c;
    } else if (!line.empty() && line.back() != ' ') {
      line += ' ';
    }
  }
  return line;
}

// "at most 10,000 pods", "kMost = 10'000;": 10000. "" without one.
std::string FirstNumber(std::string_view text) {
  std::string digits;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool digit = std::isdigit(static_cast<unsigned char>(text[i])) != 0;
    const bool goes_on =
        i + 1 < text.size() && std::isdigit(static_cast<unsigned char>(text[i + 1])) != 0;
    if (digit) {
      digits += text[i];
    } else if (!digits.empty() && !((text[i] == ',' || text[i] == '\'') && goes_on)) {
      break;
    }
  }
  return digits;
}

// What is wrong with a row of the table; empty = nothing.
std::string WrongWith(const std::vector<std::string>& row) {
  if (row.size() != 4) return "want four columns";
  const std::string page = OneLine(ReadText(SourceDir() + "/" + row[0]));
  if (page.find(row[1]) == std::string::npos) return row[0] + " does not say: " + row[1];
  const bool other_unit = row[3].starts_with('~');
  const std::string code = row[3].substr(other_unit ? 1 : 0);
  if (OneLine(ReadText(SourceDir() + "/" + row[2])).find(code) == std::string::npos) {
    return row[2] + " has no \"" + code + "\": " + row[0] + " says: " + row[1];
  }
  const bool equal = other_unit || FirstNumber(row[1]) == FirstNumber(code);
  return equal ? "" : row[1] + " is not the number of " + code;
}

std::vector<std::string> Columns(const std::string& line) {
  std::vector<std::string> columns;
  for (std::size_t begin = 0; begin <= line.size();) {
    const std::size_t end = std::min(line.find(" | ", begin), line.size());
    columns.push_back(line.substr(begin, end - begin));
    begin = end + 3;
  }
  return columns;
}

TEST(DocsNumbers, AreThoseOfTheCode) {
  std::size_t rows = 0;
  std::istringstream text(ReadText(SourceDir() + "/test/arch/docs_numbers.txt"));
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with('#')) continue;
    EXPECT_EQ(WrongWith(Columns(line)), "");
    ++rows;
  }
  EXPECT_GT(rows, 60U);
}

TEST(DocsNumbers, ThatDifferAreFound) {
  EXPECT_EQ(FirstNumber("at most 10,000 pods, 3 of"), "10000");
  EXPECT_EQ(FirstNumber("kMost = 10'000;"), "10000");
  EXPECT_EQ(FirstNumber("(60, then"), "60");
  const std::string file = "test/arch/docs_numbers_test.cc", code = "rows, 60U";
  EXPECT_EQ(WrongWith({"docs/tls.md", "the CA for ten", file, "~" + code}), "");
  EXPECT_NE(WrongWith({"docs/tls.md", "the CA for eleven", file, "~" + code}), "");
  EXPECT_NE(WrongWith({"docs/tls.md", "the CA for ten", file, "~rows, 61" + std::string("U")}), "");
  EXPECT_NE(WrongWith({"docs/gangs.md", "(50)", file, code}), "");
}

}  // namespace
}  // namespace berth::test::docs_numbers_test
