// SPDX-License-Identifier: Apache-2.0
//
// Pages of docs/ are read by people in a hurry: a sentence has at most 30 words.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "test/support/build_paths.h"
#include "test/support/read_text.h"

namespace berth::test::page_size_test {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostOfSentence = 30;

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// Without the parts that programs write, which are looked up and not read.
std::string Written(const fs::path& page) {
  const std::string text = ReadText(page);
  if (page.filename() == "metrics.md" || page.filename() == "alerts.md") return {};
  return text.substr(0, text.find("\n## All settings"));
}

// A line as it is spoken: code is one word, of a link the text counts.
std::string Spoken(std::string_view line) {
  std::string text;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '`') {
      const std::size_t end = line.find('`', i + 1);
      text += "code";
      if (end == std::string_view::npos) break;
      i = end;
    } else if (line[i] == ']' && i + 1 < line.size() && line[i + 1] == '(') {
      i = std::min(line.find(')', i), line.size());
    } else if (line[i] != '[') {
      text += line[i];
    }
  }
  return text;
}

// The paragraphs, items of lists and cells of tables, without examples.
std::vector<std::string> Blocks(const std::string& page) {
  std::vector<std::string> blocks = {""};
  bool fenced = false;
  for (const std::string& line : LinesOf(page)) {
    const std::size_t begin = line.find_first_not_of(' ');
    const std::string text = begin == std::string::npos ? "" : line.substr(begin);
    if (text.starts_with("```")) fenced = !fenced;
    const bool code = fenced || line.starts_with("    ") || text.starts_with("![");
    const bool is_item = text.starts_with("- ") || text.starts_with("* ") ||
                         (text.size() > 2 && std::isdigit(static_cast<unsigned char>(text[0])) &&
                          text.find(". ") <= 2);
    if (text.empty() || code || is_item || text[0] == '#' || text[0] == '|') blocks.emplace_back();
    if (code || text.empty() || text[0] == '#') continue;
    if (text[0] != '|') {
      blocks.back() += " " + (is_item ? text.substr(text.find(' ')) : text);
      continue;
    }
    std::istringstream cells(text);
    for (std::string cell; std::getline(cells, cell, '|');) blocks.push_back(cell);
    blocks.emplace_back();
  }
  return blocks;
}

// Longer ones. What stands before a colon or a semicolon is a sentence of its own.
std::vector<std::string> LongSentences(const std::string& page) {
  std::vector<std::string> found;
  for (const std::string& block : Blocks(page)) {
    std::istringstream words(Spoken(block));
    std::string sentence;
    std::size_t count = 0;
    for (std::string word; words >> word;) {
      sentence += word + " ";
      ++count;
      const std::size_t last = word.find_last_not_of("\"*)”");
      const bool ends = last != std::string::npos &&
                        std::string_view(".!?:;").find(word[last]) != std::string::npos;
      if (!ends) continue;
      if (count > kMostOfSentence) found.push_back(sentence);
      sentence.clear();
      count = 0;
    }
    if (count > kMostOfSentence) found.push_back(sentence);
  }
  return found;
}

TEST(Pages, HaveShortSentences) {
  std::size_t pages = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(SourceDir()) / "docs")) {
    if (entry.path().extension() != ".md") continue;
    const std::string text = Written(entry.path());
    ++pages;
    for (const std::string& sentence : LongSentences(text)) {
      ADD_FAILURE() << entry.path().filename() << ": more than " << kMostOfSentence
                    << " words: " << sentence;
    }
  }
  EXPECT_GT(pages, 30U);
}

TEST(Pages, LongSentencesAreFoundWhereTheyAre) {
  std::string thirty;
  for (int i = 0; i < 29; ++i) thirty += "word ";
  thirty += "`all of this is one` ";
  EXPECT_TRUE(LongSentences(thirty + "\n").empty());
  EXPECT_EQ(LongSentences("- " + thirty + "[more](x.md#y).\n").size(), 1U);
  EXPECT_EQ(LongSentences("| a | " + thirty + "more |\n").size(), 1U);
  EXPECT_TRUE(LongSentences("    " + thirty + "more\n").empty()) << "an example";
  EXPECT_TRUE(LongSentences("A list: " + thirty + "\n").empty());
  EXPECT_EQ(LongSentences("Short. " + thirty + "\nmore words.\n").size(), 1U)
      << "over the end of a line";
}

}  // namespace
}  // namespace berth::test::page_size_test
