// SPDX-License-Identifier: Apache-2.0
#include "test/support/captured.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>

#include <gtest/gtest.h>

#include "config/config.h"
#include "server/wire/node/node_json.h"
#include "test/support/data_dir.h"
#include "test/support/dialects.h"

namespace berth::test {

std::filesystem::path CaptureDir() { return DataDir() / "wire"; }

std::vector<std::filesystem::path> Captures(std::string_view scheduler, std::string_view verb) {
  const std::string start = std::string(scheduler) + "-" + std::string(verb);
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(CaptureDir())) {
    const std::string name = entry.path().filename();
    if (name.starts_with(start) && (name.ends_with(".json") || name.ends_with(".json.gz"))) {
      files.push_back(entry.path());
    }
  }
  std::ranges::sort(files);
  EXPECT_FALSE(files.empty()) << start;
  return files;
}

std::string ReadCapture(const std::filesystem::path& file) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> in(gzopen(file.c_str(), "rb"), gzclose);
  std::string text;
  std::array<char, 65536> bytes{};
  for (int count = 1; in != nullptr && count > 0;) {
    count = gzread(in.get(), bytes.data(), static_cast<unsigned>(bytes.size()));
    if (count > 0) text.append(bytes.data(), static_cast<std::size_t>(count));
  }
  EXPECT_FALSE(text.empty()) << file;
  return text;
}

std::vector<NodeSpec> CapturedNodes(std::string_view scheduler, bool large) {
  std::map<std::string, NodeSpec> nodes;
  for (const auto& file : Captures(scheduler, "filter")) {
    if (!large && file.extension() == ".gz") continue;
    const std::string body = ReadCapture(file);
    std::string list = R"({"items":[)";
    for (const std::string_view item : RawItems(body)) {
      if (nodes.contains(NameOfItem(item))) continue;
      if (list.back() == '}') list += ',';
      list += item;
    }
    list += "]}";
    const auto decoded = wire::DecodeNodeList(
        PaddedText(std::move(list)), wire::NodeRules(DefaultConfig(), test::AllDialects()));
    if (!decoded) {
      ADD_FAILURE() << file << ": " << decoded.error().message;
      continue;
    }
    for (const auto& node : *decoded) nodes.emplace(node.spec.name, node.spec);
  }
  std::vector<NodeSpec> all;
  for (auto& [name, node] : nodes) all.push_back(std::move(node));
  return all;
}

std::vector<std::string_view> RawItems(std::string_view text) {
  constexpr std::string_view kItems = "\"items\":[";
  std::vector<std::string_view> items;
  std::size_t at = text.find("\"Nodes\":{");
  if (at != std::string_view::npos) at = text.find(kItems, at);
  if (at == std::string_view::npos) return items;
  int depth = 0;
  std::size_t begin = 0;
  for (at += kItems.size(); at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') {
      for (++at; text[at] != '"'; ++at) {
        if (text[at] == '\\') ++at;
      }
    } else if (c == '{') {
      if (depth++ == 0) begin = at;
    } else if (c == '}') {
      if (--depth == 0) items.push_back(text.substr(begin, at + 1 - begin));
    } else if (c == ']' && depth == 0) {
      break;
    }
  }
  return items;
}

std::string NameOfItem(std::string_view item) {
  constexpr std::string_view kStart = "{\"metadata\":{\"name\":\"";
  if (!item.starts_with(kStart)) return "";
  return std::string(item.substr(kStart.size(), item.find('"', kStart.size()) - kStart.size()));
}

}  // namespace berth::test
