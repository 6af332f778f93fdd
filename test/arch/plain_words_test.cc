// SPDX-License-Identifier: Apache-2.0
//
// Sources and documents speak plainly: phrases that have to be read twice are refused, in comments
// as in the texts that users see.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

#include "test/support/build_paths.h"
#include "test/support/read_text.h"

namespace berth::test::plain_words_test {
namespace {

namespace fs = std::filesystem;

struct Phrase {
  std::string_view words, instead;
};

constexpr std::array<Phrase, 17> kRefused = {{
    {"of which", "two sentences, or \"with\""},
    {"is told", "hears, learns, sees"},
    {"are told", "hear, learn, see"},
    {"is none for", "does not take"},
    {"are none for", "do not take"},
    {"such devices are none", "Berth does not count such devices"},
    {"none of ours", "not of Berth"},
    {"whatever for", "for any reason"},
    {"by what for", "by use"},
    {"whoever", "anybody who, or a name"},
    {"goes before", "takes precedence over"},
    {"go before", "take precedence over"},
    {"as far as", "if, where"},
    {"does without it", "does not need it"},
    {"do without it", "do not need it"},
    {"likewise", "the same, also"},
    {"stands in the way", "prevents"},
}};

// What contains one of them and reads well.
constexpr std::array<std::string_view, 9> kFine = {
    "all of which",  "each of which", "half of which",  "last of which", "most of which",
    "none of which", "some of which", "are told apart", "is told apart",
};

// Not looked at: what is history, and this list.
const std::set<std::string> kHistory = {"CHANGELOG.md", "LAB.md", "plain_words_test.cc"};

bool IsOfAWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

bool Says(const std::string& line, std::string_view words) {
  for (std::size_t at = line.find(words); at != std::string::npos; at = line.find(words, at + 1)) {
    const std::size_t end = at + words.size();
    const bool begins = at == 0 || !IsOfAWord(line[at - 1]);
    if (begins && (end == line.size() || !IsOfAWord(line[end]))) return true;
  }
  return false;
}

// The first refused phrase of the line; nullptr: it has none.
const Phrase* RefusedIn(std::string line) {
  std::ranges::transform(line, line.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const std::string_view fine : kFine) {
    for (std::size_t at = line.find(fine); at != std::string::npos; at = line.find(fine)) {
      line.replace(at, fine.size(), "...");
    }
  }
  const auto* const found = std::ranges::find_if(
      kRefused, [&](const Phrase& phrase) { return Says(line, phrase.words); });
  return found == kRefused.end() ? nullptr : found;
}

int LinesLookedAt(const fs::path& file) {
  int lines = 0;
  std::istringstream text(ReadText(file));
  for (std::string line; std::getline(text, line);) {
    ++lines;
    const Phrase* const phrase = RefusedIn(line);
    EXPECT_EQ(phrase, nullptr) << file.string() << ":" << lines << ": \"" << phrase->words
                               << "\"; write " << phrase->instead << ":\n"
                               << line;
  }
  return lines;
}

TEST(PlainWords, ArePhrasesThatAreReadOnce) {
  const std::set<std::string> kinds = {".h", ".cc", ".go", ".js", ".md", ".yaml"};
  const fs::path root = SourceDir();
  int lines = 0;
  auto entries = fs::recursive_directory_iterator(root);
  for (auto entry = begin(entries); entry != end(entries); ++entry) {
    const fs::path& path = entry->path();
    const std::string name = path.filename().string();
    if (entry->is_directory()) {
      const bool is_build = path == root / "build" || exists(path / "CMakeCache.txt");
      if (name.starts_with('.') || is_build) entry.disable_recursion_pending();
    } else if (kinds.contains(path.extension().string()) && !kHistory.contains(name)) {
      lines += LinesLookedAt(path);
    }
  }
  EXPECT_GT(lines, 100'000);
}

TEST(PlainWords, AreFoundInAnyCaseAndOnlyAsWholeWords) {
  ASSERT_NE(RefusedIn("// Whoever asks"), nullptr);
  EXPECT_EQ(RefusedIn("// Whoever asks")->words, "whoever");
  EXPECT_EQ(RefusedIn("two GPUs, all of which are idle"), nullptr);
  EXPECT_EQ(RefusedIn("memory or none for a share"), nullptr);
  EXPECT_EQ(RefusedIn("this is toldish"), nullptr);
}

}  // namespace
}  // namespace berth::test::plain_words_test
