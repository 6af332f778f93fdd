// SPDX-License-Identifier: Apache-2.0
//
// The house rules that a compiler does not check: which room may include which, where third-party
// headers may be used, and how every file begins.
//
//   base <- {cel,topology} <- cluster <- scoring <- config <- server/extender
//        <- server/{planners,wire} <- server/{cli,http,kube,telemetry,ui} <- server/{dialects,why}
//        <- server/{pages,settings} <- server/{commands,service} <- server
//   server/{kube,telemetry} <- node
//   (X <- Y: Y may include X)
//
// A room may include itself and everything left of it; http may include base alone. bench and test
// may include everything, and nothing includes them.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "test/support/build_paths.h"
#include "test/support/read_text.h"

namespace berth::test::include_rule_test {
namespace {

constexpr std::string_view kFirstLine = "// SPDX-License-Identifier: Apache-2.0";
constexpr std::string_view kLine =
    "base <- {cel,topology} <- cluster <- scoring <- config <- server/extender <- "
    "server/{planners,wire} <- server/{cli,http,kube,telemetry,ui} <- server/{dialects,why} <- "
    "server/{pages,settings} <- "
    "server/{commands,service} <- server; server/{kube,telemetry} <- node";

struct Room {
  std::string_view path;
  int rank;  // may include what ranks lower
};
constexpr int kOutside = 100;  // bench, test
constexpr std::array<Room, 24> kRooms = {{{"base", 0},
                                          {"cel", 1},
                                          {"topology", 1},
                                          {"cluster", 2},
                                          {"scoring", 3},
                                          {"config", 4},
                                          {"server/extender", 5},
                                          {"server/planners", 6},
                                          {"server/wire", 6},
                                          {"server/cli", 7},
                                          {"server/http", 7},
                                          {"server/kube", 7},
                                          {"server/telemetry", 7},
                                          {"server/ui", 7},
                                          {"server/dialects", 8},
                                          {"server/settings", 9},
                                          {"server/why", 8},
                                          {"server/pages", 9},
                                          {"server/commands", 10},
                                          {"server/service", 10},
                                          {"server", 11},
                                          {"node", 8},
                                          {"bench", kOutside},
                                          {"test", kOutside}}};

// Headers that begin so may be used in files that begin (or, for "/main.cc", end) so. The first row
// that matches decides.
struct Home {
  std::string_view header;
  std::vector<std::string_view> places;
};
const std::vector<Home> kHomes = {
    {"yaml-cpp/", {"config/"}},
    {"simdjson", {"server/wire/", "server/dialects/"}},
    {"nlohmann/", {"server/wire/", "server/dialects/", "server/why/", "node/", "bench/", "test/"}},
    {"grpc", {"node/", "test/support/node/", "test/integration/node/"}},
    {"google/protobuf/", {"node/", "test/support/node/", "test/integration/node/"}},
    {"node/proto/", {"node/", "test/support/node/", "test/integration/node/"}},
    {"re2/", {"cel/"}},
    {"boost/graph/", {"topology/"}},
    {"boost/uuid/", {"server/dialects/dra/"}},
    {"pugixml", {"bench/machine_files/"}},
    {"boost/", {"server/http/", "server/kube/", "bench/", "test/"}},
    {"asio", {"server/http/", "server/kube/", "bench/", "test/"}},
    {"openssl/",
     {"server/http/", "server/kube/", "server/settings/config_file.cc", "bench/", "test/"}},
    {"cpprest/", {"server/kube/"}},
    {"prometheus/", {"server/telemetry/"}},
    {"spdlog/", {"server/telemetry/", "server/main.cc"}},
    {"CLI/", {"/main.cc", "server/cli/", "bench/replay/commands/", "bench/lab/commands/"}},
    {"gtest/", {"test/", "bench/lab/test/"}},
    {"gmock/", {"test/", "bench/lab/test/"}},
    {"benchmark/", {"bench/"}},
    // Readers that throw.
    {"server/wire/json/object_reader.h", {"server/wire/", "server/dialects/"}},
    {"server/wire/pod/pod_json.h", {"server/wire/", "server/dialects/"}},
    {"server/wire/json/selector_json.h", {"server/wire/", "server/dialects/"}}};

// The room that a file is in: "server/http/listener.cc" -> server/http, "server/main.cc" -> server.
const Room* RoomOf(std::string_view path) {
  for (const Room& room : kRooms) {
    if (!path.starts_with(room.path) || path.substr(room.path.size()).find('/') != 0) continue;
    const std::string_view rest = path.substr(room.path.size() + 1);
    const bool nested = rest.find('/') != std::string_view::npos;
    if (room.path == "server" && nested) continue;  // a room of its own that nobody told us of
    return &room;
  }
  return nullptr;
}

bool MayInclude(const Room& from, const Room& to) {
  if (&from == &to || from.rank == kOutside) return true;
  if (to.rank == kOutside) return false;
  if (from.path == "server/http") return to.path == "base";
  return to.rank < from.rank;
}

struct Include {
  std::string_view header;
  bool quoted = false;
};

// The include of a line; an empty header where there is none.
Include IncludeOf(std::string_view line) {
  const auto skip = [&line](std::string_view what) {
    if (!line.starts_with(what)) return false;
    line.remove_prefix(what.size());
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    return true;
  };
  skip("");
  if (!skip("#") || !skip("include") || line.empty()) return {};
  const char closing = line[0] == '<' ? '>' : line[0];
  if (closing != '>' && closing != '"') return {};
  line.remove_prefix(1);
  return {line.substr(0, line.find(closing)), closing == '"'};
}

class Checker {
 public:
  // Appends what is wrong with one file as "FILE:LINE: rule".
  void Check(const std::string& path, std::string_view text) {
    path_ = path;
    room_ = RoomOf(path);
    line_ = 1;
    if (room_ == nullptr) Violates("in no room of " + std::string(kLine));
    if (text.substr(0, text.find('\n')) != kFirstLine) {
      Violates("want \"" + std::string(kFirstLine) + "\" as the first line");
    }
    CheckFirstInclude(text);
    bool once = !path.ends_with(".h");
    for (std::size_t at = 0; at < text.size(); ++line_) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      const std::string_view line = text.substr(at, end - at);
      once = once || line == "#pragma once";
      if (const Include include = IncludeOf(line); !include.header.empty()) CheckInclude(include);
      at = end + 1;
    }
    line_ = 1;
    if (!once) Violates("want #pragma once in a header");
  }

  [[nodiscard]] const std::vector<std::string>& violations() const { return violations_; }

 private:
  // A source file includes its own header first, so that compiling it proves the header complete.
  // Headers without a source file are compiled alone (cmake/BerthRoom.cmake).
  void CheckFirstInclude(std::string_view text) {
    if (!path_.ends_with(".cc")) return;
    const std::string own = path_.substr(0, path_.size() - 2) + "h";
    std::string_view first;
    bool has_own = false;
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      const Include include = IncludeOf(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
      if (include.header.empty()) continue;
      if (first.empty()) first = include.header;
      has_own = has_own || (include.quoted && include.header == own);
    }
    if (has_own && first != own) Violates("want #include \"" + own + "\" before any other");
  }

  void CheckInclude(const Include& include) {
    const std::string header(include.header);
    CheckHome(header);
    if (!include.quoted || room_ == nullptr) return;
    const Room* const to = RoomOf(include.header);
    if (to == nullptr) {
      Violates("\"" + header + "\" is not a path from the root to a room of " + std::string(kLine));
    } else if (!MayInclude(*room_, *to)) {
      const bool http = room_->path == "server/http";
      Violates("\"" + header + "\": " + std::string(room_->path) + " may not include " +
               std::string(to->path) + " (" +
               (http ? "server/http may include base alone" : std::string(kLine)) + ")");
    }
  }

  void CheckHome(const std::string& header) {
    const auto home = std::ranges::find_if(
        kHomes, [&header](const Home& row) { return header.starts_with(row.header); });
    if (home == kHomes.end()) return;
    std::string allowed;
    for (const std::string_view place : home->places) {
      if (place[0] == '/' ? path_.ends_with(place) : path_.starts_with(place)) return;
      allowed.append(allowed.empty() ? "" : ", ").append(place);
    }
    Violates("<" + header + "> may be used only in " + allowed);
  }

  void Violates(const std::string& rule) {
    violations_.push_back(path_ + ":" + std::to_string(line_) + ": " + rule);
  }

  std::string path_;
  const Room* room_ = nullptr;
  int line_ = 1;
  std::vector<std::string> violations_;
};

std::vector<std::string> ViolationsOf(const std::string& path, std::string_view body) {
  Checker checker;
  checker.Check(path, std::string(kFirstLine) + "\n" + std::string(body));
  return checker.violations();
}

// Every source and header of the checkout, as a path from the root; build trees are left out.
std::vector<std::string> SourceFiles(const std::filesystem::path& root) {
  std::vector<std::string> files;
  auto entries = std::filesystem::recursive_directory_iterator(root);
  for (auto entry = begin(entries); entry != end(entries); ++entry) {
    const std::filesystem::path& path = entry->path();
    if (entry->is_directory()) {
      const bool hidden = path.filename().string().starts_with('.');
      const bool build = path == root / "build" || exists(path / "CMakeCache.txt");
      if (hidden || build) entry.disable_recursion_pending();
    } else if (path.extension() == ".h" || path.extension() == ".cc") {
      files.push_back(path.lexically_relative(root).generic_string());
    }
  }
  std::ranges::sort(files);
  return files;
}

TEST(IncludeRule, HoldsInEveryFile) {
  const std::filesystem::path root = SourceDir();
  const std::vector<std::string> files = SourceFiles(root);
  std::set<std::string_view> rooms;
  Checker checker;
  for (const std::string& file : files) {
    checker.Check(file, ReadText(root / file));
    if (const Room* room = RoomOf(file)) rooms.insert(room->path);
  }
  for (const std::string& violation : checker.violations()) ADD_FAILURE() << violation;
  for (const std::string_view room : {"base", "topology", "cluster", "scoring", "bench", "test"}) {
    EXPECT_TRUE(rooms.contains(room)) << "no file of " << room << " was looked at in " << root;
  }
}

// So that any of them can be compiled as one, whatever names they give (cmake/BerthRoom.cmake).
TEST(TestFiles, HaveANamespaceOfTheirOwn) {
  const std::filesystem::path root = SourceDir();
  for (const std::string& file : SourceFiles(root)) {
    if (!file.ends_with("_test.cc")) continue;
    const std::string own = "::" + std::filesystem::path(file).stem().string() + " {\n";
    EXPECT_NE(ReadText(root / file).find(own), std::string::npos)
        << file << ": want namespace berth" << own;
  }
}

TEST(IncludeRule, WantsTheOwnHeaderFirst) {
  EXPECT_TRUE(ViolationsOf("base/a.cc", "#include \"base/a.h\"\n#include <vector>\n").empty());
  EXPECT_EQ(ViolationsOf("base/a.cc", "#include <vector>\n#include \"base/a.h\"\n"),
            std::vector<std::string>{"base/a.cc:1: want #include \"base/a.h\" before any other"});
}

struct RuleCase {
  std::string description, path, line;
  std::string want;  // the rule that is broken; empty = none
};

void ExpectRules(const std::vector<RuleCase>& cases) {
  for (const RuleCase& c : cases) {
    const std::vector<std::string> found = ViolationsOf(c.path, "\n" + c.line + "\n");
    if (c.want.empty()) {
      EXPECT_TRUE(found.empty()) << c.description << ": " << found.front();
      continue;
    }
    ASSERT_EQ(found.size(), 1U) << c.description;
    EXPECT_TRUE(found[0].starts_with(c.path + ":3: ")) << c.description << ": " << found[0];
    EXPECT_NE(found[0].find(c.want), std::string::npos) << c.description << ": " << found[0];
  }
}

TEST(IncludeRule, LetsARoomIncludeItselfAndWhatIsLeftOfIt) {
  ExpectRules(
      {{"itself", "scoring/engine/engine.cc", "#include \"scoring/engine/engine.h\"", ""},
       {"below itself", "scoring/registry.cc", "#include \"scoring/filters/device_fit.h\"", ""},
       {"the left neighbour", "scoring/engine/engine.cc", "#include \"cluster/node/node.h\"", ""},
       {"the leftmost", "server/main.cc", "#include \"base/result.h\"", ""},
       {"an adapter the wire", "server/kube/a.cc", "#include \"server/wire/pod/pod_object.h\"", ""},
       {"http the base", "server/http/a.cc", "#include \"base/mutex.h\"", ""},
       {"main an adapter", "server/main.cc", "#include \"server/http/http_server.h\"", ""},
       {"a test a test header", "test/unit/a_test.cc", "#include \"test/support/b.h\"", ""},
       {"a bench a server room", "bench/load/a.cc", "#include \"server/wire/b.h\"", ""},
       {"the standard library", "base/a.cc", "#include <vector>", ""}});
}

TEST(IncludeRule, FlagsWhatPointsToTheRight) {
  ExpectRules(
      {{"base topology", "base/a.cc", "#include \"topology/b.h\"", "base may not include topology"},
       {"cluster scoring", "cluster/a.cc", "#include \"scoring/b.h\"",
        "cluster may not include scoring"},
       {"scoring config", "scoring/a.cc", "#include \"config/b.h\"",
        "scoring may not include config"},
       {"extender wire", "server/extender/a.cc", "#include \"server/wire/b.h\"",
        "server/extender may not include server/wire"},
       {"wire http", "server/wire/a.cc", "#include \"server/http/b.h\"",
        "server/wire may not include server/http"},
       {"a sibling", "server/ui/a.cc", "#include \"server/telemetry/b.h\"",
        "server/ui may not include server/telemetry"},
       {"an adapter the top", "server/kube/a.cc", "#include \"server/service/routes.h\"",
        "server/kube may not include server/service ("},
       {"http the wire", "server/http/a.cc", "#include \"server/wire/b.h\"",
        "server/http may include base alone"},
       {"http the cluster", "server/http/a.cc", "#include \"cluster/node/node.h\"",
        "server/http may include base alone"},
       {"a room a test", "scoring/a.cc", "#include \"test/support/b.h\"",
        "scoring may not include test"},
       {"main the bench", "server/main.cc", "#include \"bench/replay/csv.h\"",
        "server may not include bench"},
       {"a blank or two", "base/a.cc", "  # include  \"cluster/node/node.h\"",
        "base may not include cluster"},
       {"a bare name", "scoring/a.cc", "#include \"engine.h\"", "is not a path from the root"},
       {"a relative path", "scoring/a.cc", "#include \"../cluster/node.h\"",
        "is not a path from the root"},
       {"a room that only begins alike", "scoring/a.cc", "#include \"baseline/b.h\"",
        "is not a path from the root"}});
}

TEST(IncludeRule, KeepsThirdPartyHeadersAtHome) {
  ExpectRules(
      {{"YAML", "config/load.cc", "#include <yaml-cpp/yaml.h>", ""},
       {"YAML in a test", "test/a.cc", "#include <yaml-cpp/yaml.h>", "only in config/"},
       {"simdjson", "server/wire/a.cc", "#include <simdjson.h>", ""},
       {"simdjson elsewhere", "server/kube/a.cc", "#include <simdjson.h>", "only in server/wire/"},
       {"JSON in a test", "test/wire/a.cc", "#include <nlohmann/json.hpp>", ""},
       {"JSON in config", "config/a.cc", "#include <nlohmann/json.hpp>", "only in server/wire/"},
       {"JSON in an adapter", "server/kube/a.cc", "#include <nlohmann/json.hpp>",
        "only in server/wire/"},
       {"a reader that throws", "server/dialects/hami/a.cc",
        "#include \"server/wire/json/object_reader.h\"", ""},
       {"a reader that throws, in an adapter", "server/kube/a.cc",
        "#include \"server/wire/json/object_reader.h\"", "only in server/wire/, server/dialects/"},
       {"the graph", "topology/a.cc", "#include <boost/graph/adjacency_list.hpp>", ""},
       {"the graph elsewhere", "server/http/a.cc", "#include <boost/graph/adjacency_list.hpp>",
        "only in topology/"},
       {"other Boost in topology", "topology/a.cc", "#include <boost/asio.hpp>",
        "only in server/http/"},
       {"TLS", "server/kube/a.cc", "#include <openssl/ssl.h>", ""},
       {"TLS elsewhere", "server/main.cc", "#include <openssl/ssl.h>", "only in server/http/"},
       {"metrics elsewhere", "server/http/a.cc", "#include <prometheus/counter.h>",
        "only in server/telemetry/"},
       {"the log in main", "server/main.cc", "#include <spdlog/spdlog.h>", ""},
       {"the log elsewhere", "server/service/routes.cc", "#include <spdlog/spdlog.h>",
        "only in server/telemetry/, server/main.cc"},
       {"the command line in a main", "bench/replay/main.cc", "#include <CLI/CLI.hpp>", ""},
       {"the command line in a command", "bench/replay/commands/run.cc", "#include <CLI/CLI.hpp>",
        ""},
       {"the command line elsewhere", "config/a.cc", "#include <CLI/CLI.hpp>", "only in /main.cc"},
       {"GoogleTest in production", "cluster/a.cc", "#include <gtest/gtest.h>", "only in test/"}});
}

TEST(IncludeRule, LooksAtTheFirstLineAndAtThePragma) {
  Checker checker;
  checker.Check("base/a.h", "#pragma once\n");
  checker.Check("base/b.h", std::string(kFirstLine) + "\n");
  checker.Check("base/c.cc", "");
  checker.Check("base/d.cc",
                std::string(kFirstLine) + "\n// #include \"scoring/engine/engine.h\"\n");
  checker.Check("server/new/e.cc", std::string(kFirstLine) + "\n");
  const std::string first = "want \"" + std::string(kFirstLine) + "\" as the first line";
  EXPECT_EQ(
      checker.violations(),
      (std::vector<std::string>{"base/a.h:1: " + first, "base/b.h:1: want #pragma once in a header",
                                "base/c.cc:1: " + first,
                                "server/new/e.cc:1: in no room of " + std::string(kLine)}));
}

}  // namespace
}  // namespace berth::test::include_rule_test
