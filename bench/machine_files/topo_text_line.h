// SPDX-License-Identifier: Apache-2.0
//
// The pieces of one line of `nvidia-smi topo -m`, without a memory of other lines. For
// topo_text.cc.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "topology/links/link_matrix.h"

namespace berth::topo_text {

struct Line {
  std::string text;  // without escapes and prefixes; a prefix leaves a blank
  int number = 0;    // from 1
  bool had_escape = false, had_prefix = false;
};
Line CleanLine(std::string_view text, int number);

struct Header {
  // What a column of a Markdown table holds; 0 and up: that device.
  static constexpr int kRowName = -1, kCpuAffinity = -2, kNumaAffinity = -3, kOther = -4;

  std::vector<std::string> gpus, nics;
  bool cpu = false, numa = false, gpu_numa = false;  // the affinity columns that there are
  std::size_t cpu_at = 0, numa_at = 0;               // where they begin in the line
  bool glued = false, markdown = false;
  std::vector<int> columns;  // of a Markdown table
  int line = 0;
};
// nullopt for a line that is no header: device names, GPUs first, then affinity columns.
std::optional<Header> ReadHeader(const Line& line);

struct Cell {
  Link link;
  std::string text;
  bool valid = false;
  bool self = false;   // "X", or "0" of rocm-smi
  bool glued = false;  // the next cell begins at once
};
// The cell at or after `at`, which moves behind it.
Cell ReadCell(std::string_view text, std::size_t& at);

struct Affinity {
  std::string cpu, numa;
};
// The affinity columns of a row whose cells end at `at`.
Affinity ReadAffinity(const Header& header, std::string_view text, std::size_t at);

std::vector<std::string> MarkdownFields(std::string_view text);
std::vector<std::string_view> Words(std::string_view text);
std::string FirstWord(std::string_view text);

// "GPU12" of "  GPU12  X ..."; empty where the line does not begin with a device's name.
std::string_view DeviceNameAt(std::string_view text);

}  // namespace berth::topo_text
