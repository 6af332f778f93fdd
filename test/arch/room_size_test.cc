// SPDX-License-Identifier: Apache-2.0
//
// The tree grows on purpose alone: room_sizes.txt says how large each room may be. A commit that
// needs more raises the row of its room, and says why in the last column.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "test/support/build_paths.h"
#include "test/support/read_text.h"

namespace berth::test::room_size_test {
namespace {

namespace fs = std::filesystem;

struct Size {
  int lines = 0, files = 0, largest = 0;  // lines of the largest file
};

struct Row {
  Size most;
  std::string reason;
};

std::string TextOf(const std::string& room, const Size& size) {
  return room + " | " + std::to_string(size.lines) + " | " + std::to_string(size.files) + " | " +
         std::to_string(size.largest);
}

// ROOM | LINES | FILES | LARGEST FILE | WHY; other lines are comments.
std::map<std::string, Row> RowsOf(const std::string& text) {
  std::map<std::string, Row> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.starts_with('#')) continue;
    std::istringstream cells(line);
    std::string room, bar;
    Row row;
    cells >> room >> bar >> row.most.lines >> bar >> row.most.files >> bar >> row.most.largest >>
        bar;
    std::getline(cells >> std::ws, row.reason);
    EXPECT_TRUE(rows.emplace(room, row).second) << room << " is there twice";
  }
  return rows;
}

// The longest name of a row that the path begins with.
std::string RoomOf(const std::map<std::string, Row>& rows, const std::string& path) {
  std::string found;
  for (const auto& [room, row] : rows) {
    if (path.starts_with(room + "/") && room.size() > found.size()) found = room;
  }
  return found;
}

// Of the files that programs are made of: all but tests and benchmarks.
std::map<std::string, Size> SizesOf(const std::map<std::string, Row>& rows, const fs::path& root) {
  std::map<std::string, Size> sizes;
  auto entries = fs::recursive_directory_iterator(root);
  for (auto entry = begin(entries); entry != end(entries); ++entry) {
    const fs::path& path = entry->path();
    const std::string name = path.lexically_relative(root).generic_string();
    if (entry->is_directory()) {
      const bool elsewhere = name == "test" || name == "bench" || name == "build" ||
                             path.filename().string().starts_with('.') ||
                             exists(path / "CMakeCache.txt");
      if (elsewhere) entry.disable_recursion_pending();
      continue;
    }
    if (path.extension() != ".h" && path.extension() != ".cc") continue;
    const std::string room = RoomOf(rows, name);
    EXPECT_NE(room, "") << name << " is in no room of test/arch/room_sizes.txt";
    const std::string text = ReadText(path);
    const auto lines = static_cast<int>(std::ranges::count(text, '\n'));
    Size& size = sizes[room];
    size.lines += lines;
    ++size.files;
    size.largest = std::max(size.largest, lines);
  }
  return sizes;
}

bool Within(const Size& size, const Size& most) {
  return size.lines <= most.lines && size.files <= most.files && size.largest <= most.largest;
}

TEST(RoomSize, IsWithinTheTable) {
  const fs::path root = SourceDir();
  const std::map<std::string, Row> rows = RowsOf(ReadText(root / "test/arch/room_sizes.txt"));
  for (const auto& [room, size] : SizesOf(rows, root)) {
    if (room.empty()) continue;
    const Row& row = rows.at(room);
    EXPECT_TRUE(Within(size, row.most))
        << room << " is larger than test/arch/room_sizes.txt allows. Want at most\n  "
        << TextOf(room, row.most) << "\ngot\n  " << TextOf(room, size)
        << "\nMake something of it smaller. Or raise the row, and say why in its last column.";
  }
}

TEST(RoomSize, OfEveryRoomSaysWhy) {
  const auto rows = RowsOf(ReadText(SourceDir() + "/test/arch/room_sizes.txt"));
  EXPECT_GT(rows.size(), 15U);
  for (const auto& [room, row] : rows) {
    EXPECT_GT(row.most.lines, 0) << room;
    EXPECT_NE(row.reason, "") << room << ": want a reason in the last column";
    EXPECT_TRUE(fs::is_directory(SourceDir() + "/" + room)) << room << ": there is no such room";
  }
}

TEST(RoomSize, IsReadFromRows) {
  const auto rows =
      RowsOf("# a comment\n\nserver/http | 10 | 2 | 7 | two words\nserver | 9 | 1 | 9 | x\n");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows.at("server/http").reason, "two words");
  EXPECT_EQ(TextOf("a", rows.at("server/http").most), "a | 10 | 2 | 7");
  EXPECT_EQ(RoomOf(rows, "server/http/a.cc"), "server/http");
  EXPECT_EQ(RoomOf(rows, "server/main.cc"), "server");
  EXPECT_EQ(RoomOf(rows, "base/a.cc"), "");
  EXPECT_TRUE(Within({10, 2, 7}, rows.at("server/http").most));
  EXPECT_FALSE(Within({10, 3, 7}, rows.at("server/http").most));
  EXPECT_FALSE(Within({10, 2, 8}, rows.at("server/http").most));
}

}  // namespace
}  // namespace berth::test::room_size_test
