// SPDX-License-Identifier: Apache-2.0
//
// What the documents promise about themselves: links lead somewhere, tables are complete.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "scoring/reason.h"
#include "test/support/build_paths.h"
#include "test/support/read_text.h"

namespace berth::test::docs_test {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// The files of the checkout that end so; build trees and hidden folders are left out.
std::vector<fs::path> FilesOf(const fs::path& root, const std::set<std::string>& extensions) {
  std::vector<fs::path> files;
  auto entries = fs::recursive_directory_iterator(root);
  for (auto entry = begin(entries); entry != end(entries); ++entry) {
    const fs::path& path = entry->path();
    if (entry->is_directory()) {
      const bool hidden = path.filename().string().starts_with('.');
      const bool build = path == root / "build" || exists(path / "CMakeCache.txt");
      if (hidden || build) entry.disable_recursion_pending();
    } else if (extensions.contains(path.extension().string())) {
      files.push_back(path);
    }
  }
  std::ranges::sort(files);
  return files;
}

// A heading as links name it: "## What works with what" -> "what-works-with-what".
std::string AnchorOf(std::string_view heading) {
  heading.remove_prefix(std::min(heading.find_first_not_of('#'), heading.size()));
  heading.remove_prefix(std::min(heading.find_first_not_of(' '), heading.size()));
  std::string anchor;
  for (const char c : heading) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '-' || c == '_') {
      anchor += static_cast<char>(std::tolower(byte));
    } else if (c == ' ') {
      anchor += '-';
    }
  }
  return anchor;
}

bool HasAnchor(const std::string& text, const std::string& anchor) {
  return std::ranges::any_of(LinesOf(text), [&](const std::string& line) {
    return line.starts_with('#') && AnchorOf(line) == anchor;
  });
}

// The targets of [text](target) in a document, outside of its indented and fenced code.
std::vector<std::string> LinksIn(const std::string& text) {
  std::vector<std::string> links;
  bool fenced = false;
  for (const std::string& line : LinesOf(text)) {
    if (line.starts_with("```")) fenced = !fenced;
    if (fenced || line.starts_with("    ")) continue;
    for (std::size_t at = line.find("]("); at != std::string::npos; at = line.find("](", at + 2)) {
      const std::size_t end = line.find(')', at);
      if (end == std::string::npos) break;
      links.push_back(line.substr(at + 2, end - at - 2));
    }
  }
  return links;
}

// What is wrong with a link in the file of that path; empty = nothing, or it leads elsewhere.
std::string WrongWith(const std::string& link, const fs::path& file) {
  if (link.find("://") != std::string::npos || link.starts_with("mailto:")) return "";
  const std::string name = link.substr(0, link.find('#'));
  const fs::path target = name.empty() ? file : file.parent_path() / name;
  if (!exists(target)) return "there is no " + name;
  if (link.find('#') == std::string::npos) return "";
  const std::string anchor = link.substr(link.find('#') + 1);
  return HasAnchor(ReadText(target), anchor) ? "" : "no heading there is #" + anchor;
}

// The first cells of all table rows in the sections whose heading begins so, heads and rulers left
// out.
std::vector<std::string> FirstCells(const std::string& text, std::string_view heading) {
  std::vector<std::string> cells;
  bool inside = false;
  int row = 0;  // of the table; 0 is the head, 1 the ruler
  for (const std::string& line : LinesOf(text)) {
    if (line.starts_with('#')) inside = line.starts_with(heading);
    if (!line.starts_with("| ") && !line.starts_with("|-")) {
      row = 0;
    } else if (row++ > 1 && inside) {
      cells.push_back(line.substr(2, line.find(" |", 2) - 2));
    }
  }
  return cells;
}

TEST(Documents, HaveLinksThatLeadSomewhere) {
  int links = 0;
  for (const fs::path& file : FilesOf(SourceDir(), {".md"})) {
    for (const std::string& link : LinksIn(ReadText(file))) {
      const std::string wrong = WrongWith(link, file);
      EXPECT_TRUE(wrong.empty()) << file << ": (" << link << "): " << wrong;
      ++links;
    }
  }
  EXPECT_GT(links, 50);
}

// The documents that a text names by their path from the root, such as "docs/mig.md".
std::vector<std::string> DocumentsIn(const std::string& text) {
  constexpr std::string_view kOfAPath =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./";
  std::vector<std::string> names;
  for (std::size_t at = text.find("docs/"); at != std::string::npos;
       at = text.find("docs/", at + 1)) {
    if (at > 0 && kOfAPath.find(text[at - 1]) != std::string_view::npos) continue;
    std::string name = text.substr(at, text.find_first_not_of(kOfAPath, at) - at);
    while (name.ends_with('.')) name.pop_back();
    if (name.ends_with(".md")) names.push_back(std::move(name));
  }
  return names;
}

TEST(Documents, AreThereWhereOtherFilesNameThem) {
  int mentions = 0;
  const fs::path root = SourceDir();
  for (const fs::path& file : FilesOf(root, {".h", ".cc", ".go", ".yaml", ".sh", ".txt"})) {
    // The one has examples, the other sources in documents of another project.
    if (file.filename() == "docs_test.cc" || file.filename() == "domain_tree.cc") continue;
    for (const std::string& name : DocumentsIn(ReadText(file))) {
      EXPECT_TRUE(exists(root / name)) << file << " names " << name;
      ++mentions;
    }
  }
  EXPECT_GT(mentions, 5);
}

TEST(Documents, FindALinkThatLeadsNowhere) {
  const fs::path readme = fs::path(SourceDir()) / "README.md";
  EXPECT_EQ(WrongWith("docs/no-such-page.md", readme), "there is no docs/no-such-page.md");
  EXPECT_EQ(WrongWith("docs/README.md#no-such-heading", readme),
            "no heading there is #no-such-heading");
  EXPECT_EQ(LinksIn("see [a](b.md) and [c](d.md#e)\n    [no](link)\n"),
            (std::vector<std::string>{"b.md", "d.md#e"}));
  EXPECT_EQ(DocumentsIn("see docs/a-b.md. (docs/c.md); ../docs/d.md, docs/e.yaml"),
            (std::vector<std::string>{"docs/a-b.md", "docs/c.md"}));
  EXPECT_EQ(AnchorOf("## 5. Check that it works"), "5-check-that-it-works");
}

// The words of a text that begin so, to their end: "berth.dev/link", "berth_gpus".
std::set<std::string> WordsIn(const std::string& text, std::string_view beginning) {
  std::set<std::string> words;
  const auto goes_on = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
  };
  for (std::size_t at = text.find(beginning); at != std::string::npos;
       at = text.find(beginning, at + 1)) {
    if (at > 0 && goes_on(text[at - 1])) continue;
    std::size_t end = at + beginning.size();
    while (end < text.size() && goes_on(text[end])) ++end;
    if (end > at + beginning.size()) words.insert(text.substr(at, end - at));
  }
  return words;
}

TEST(Documents, NameAnnotationsAndMetricsThatAreThere) {
  const fs::path root = SourceDir();
  std::string sources;
  for (const char* room : {"cluster", "config", "manifests", "scoring", "server"}) {
    for (const fs::path& file : FilesOf(root / room, {".h", ".cc", ".yaml"})) {
      sources += ReadText(file);
    }
  }
  for (const std::string_view beginning : {"berth.dev/", "berth_"}) {
    const std::set<std::string> known = WordsIn(sources, beginning);
    std::size_t named = 0;
    for (const fs::path& file : FilesOf(root / "docs", {".md"})) {
      for (const std::string& word : WordsIn(ReadText(file), beginning)) {
        EXPECT_TRUE(known.contains(word)) << file << " names " << word;
        ++named;
      }
    }
    EXPECT_GT(named, 20U) << beginning;
  }
}

// ARCHITECTURE.md names files: in its tables, in the first column, from the folder that the heading
// of the section names; elsewhere from the root. A name may leave out ".h" and ".cc".
struct NamedPath {
  std::string folder, name;
};

std::vector<std::string> CodeIn(const std::string& line) {
  std::vector<std::string> code;
  for (std::size_t at = line.find('`'); at != std::string::npos;) {
    const std::size_t end = line.find('`', at + 1);
    if (end == std::string::npos) break;
    code.push_back(line.substr(at + 1, end - at - 1));
    at = line.find('`', end + 1);
  }
  return code;
}

std::vector<NamedPath> PathsIn(const std::string& text, const std::set<std::string>& rooms) {
  std::vector<NamedPath> paths;
  std::string folder;
  for (const std::string& line : LinesOf(text)) {
    if (line.starts_with("    ")) continue;
    const std::vector<std::string> heading =
        line.starts_with('#') ? CodeIn(line) : std::vector<std::string>();
    if (line.starts_with('#')) folder = heading.empty() ? "" : heading[0];
    const bool is_row = line.starts_with("| ");
    const std::size_t first_end = is_row && !folder.empty() ? line.find(" |", 2) : 0;
    for (const std::string& name : CodeIn(line.substr(0, first_end))) {
      paths.push_back({folder, name});
    }
    for (const std::string& name : CodeIn(line.substr(first_end))) {
      const std::string top = name.substr(0, name.find('/'));
      if (top.size() < name.size() && rooms.contains(top)) paths.push_back({"", name});
    }
  }
  return paths;
}

bool IsThere(const NamedPath& path) {
  const fs::path base = fs::path(SourceDir()) / path.folder / path.name;
  return exists(base) || fs::exists(base.string() + ".h") || fs::exists(base.string() + ".cc");
}

TEST(Documents, NameFilesThatAreThere) {
  const fs::path root = SourceDir();
  std::set<std::string> rooms;
  for (const auto& entry : fs::directory_iterator(root)) {
    if (entry.is_directory()) rooms.insert(entry.path().filename().string());
  }
  rooms.erase("build");
  std::size_t named = 0;
  for (const char* document : {"ARCHITECTURE.md", "INTERNALS.md"}) {
    for (const NamedPath& path : PathsIn(ReadText(root / document), rooms)) {
      EXPECT_TRUE(path.name.find(' ') != std::string::npos || IsThere(path))
          << document << " names " << path.name << " in \"" << path.folder << "\"";
      ++named;
    }
  }
  EXPECT_GT(named, 100U);
  EXPECT_FALSE(IsThere({"base", "no_such_file"}));
}

// Every text that a pod's condition may have is where a reader of docs/my-pod-waits.md looks for
// it: under "Not now" if waiting or a preemption can help, else under "Never".
TEST(Documents, ExplainEveryReason) {
  const auto rows = [](std::string_view heading) {
    std::set<std::string> texts;
    const std::string page = ReadText(fs::path(SourceDir()) / "docs/my-pod-waits.md");
    for (const std::string& cell : FirstCells(page, heading)) {
      EXPECT_TRUE(texts.insert(cell).second) << cell << " is there twice";
    }
    return texts;
  };
  const std::set<std::string> not_now = rows("## Not now");
  const std::set<std::string> never = rows("## Never");
  std::set<std::string> want_now, want_never;
  for (auto i = std::uint8_t{0}; i < static_cast<std::uint8_t>(Reason::kCount); ++i) {
    const auto reason = static_cast<Reason>(i);
    const std::string text(TextOf(reason));
    if (text.empty()) continue;
    (VerdictOf(reason) == Verdict::kUnresolvable ? want_never : want_now).insert(text);
  }
  // Of a shortage that no eviction helps the text is the same.
  for (const std::string& text : want_now) want_never.erase(text);
  EXPECT_EQ(not_now, want_now);
  EXPECT_EQ(never, want_never);
}

// "[page.md](page.md)" tells a reader of the site nothing.
TEST(Documents, CallPagesByTheirTitles) {
  int links = 0;
  for (const fs::path& file : FilesOf(fs::path(SourceDir()) / "docs", {".md"})) {
    const std::string text = ReadText(file);
    for (std::size_t at = text.find("]("); at != std::string::npos; at = text.find("](", at + 2)) {
      const std::size_t begin = text.rfind('[', at);
      const std::string shown = text.substr(begin + 1, at - begin - 1);
      EXPECT_FALSE(shown.ends_with(".md") || shown.ends_with(".md`")) << file << ": " << shown;
      ++links;
    }
  }
  EXPECT_GT(links, 100);
}

TEST(Documents, SayWhatToDoForEveryAlert) {
  const fs::path root = SourceDir();
  std::set<std::string> alerts, headings;
  for (const std::string& line : LinesOf(ReadText(root / "manifests/monitoring/alerts.yaml"))) {
    const std::size_t at = line.find("- alert: ");
    if (at != std::string::npos) alerts.insert(line.substr(at + 9));
  }
  for (const std::string& line : LinesOf(ReadText(root / "docs/alerts.md"))) {
    if (line.starts_with("### Berth")) headings.insert(line.substr(4));
  }
  EXPECT_GT(alerts.size(), 20U);
  EXPECT_EQ(headings, alerts);
}

// The literals of a row of `kKinds`: the name first.
std::vector<std::string> LiteralsOf(std::string_view row) {
  std::vector<std::string> literals;
  for (std::size_t at = row.find('"'); at != row.npos; at = row.find('"', at)) {
    const std::size_t end = row.find('"', at + 1);
    literals.emplace_back(row.substr(at + 1, end - at - 1));
    at = end + 1;
  }
  return literals;
}

TEST(Documents, SayOfEachKindOfClusterWhatDoctorSays) {
  const fs::path root = SourceDir();
  const std::string source = ReadText(root / "server/commands/doctor_command.cc");
  const std::size_t begin = source.find("kKinds[] = {");
  std::string_view kinds =
      std::string_view(source).substr(begin, source.find("\n};", begin) - begin);
  const std::vector<std::string> lines = LinesOf(ReadText(root / "docs/clusters.md"));
  std::size_t values = 0, rows = 0;
  for (std::size_t at = kinds.find("\n    {"); at != kinds.npos;
       at = kinds.find("\n    {", at + 1)) {
    const auto literals = LiteralsOf(kinds.substr(at, kinds.find("},\n", at) - at));
    ASSERT_GE(literals.size(), 3U);
    const std::string& name = literals[0];
    if (name.starts_with("of an unknown")) continue;
    ++rows;
    std::string told;
    for (const std::string& line : lines) {
      const std::string cell = line.starts_with("| ") ? line.substr(0, line.find(" |", 2)) : "";
      if (cell.find(name) != cell.npos) told += line + "\n";
    }
    EXPECT_NE(told, "") << "docs/clusters.md has no row of " << name;
    const std::string agent = literals.size() > 4 ? literals[4] : "";
    for (std::string_view rest = agent; !rest.empty();) {
      const std::size_t end = std::min(rest.find("\\n"), rest.size());
      EXPECT_NE(told.find(rest.substr(0, end)), told.npos) << name << ": " << rest.substr(0, end);
      ++values;
      rest.remove_prefix(std::min(end + 2, rest.size()));
    }
    const bool by_page = literals.size() > 3 && literals[3].starts_with("docs/clusters.md, ");
    const bool names_itself =
        literals.size() > 3 && literals[3].starts_with("docs/clusters.md, " + name + ": ");
    EXPECT_EQ(by_page, names_itself) << name;
  }
  EXPECT_GT(rows, 8U);
  EXPECT_GE(values, 3U);
}

}  // namespace
}  // namespace berth::test::docs_test
