// SPDX-License-Identifier: Apache-2.0
#include "bench/machine_files/topo_text_line.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/text.h"

namespace berth::topo_text {
namespace {

constexpr std::string_view kBlanks = " \t";

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLower(char c) { return c >= 'a' && c <= 'z'; }

std::size_t SkipDigits(std::string_view text, std::size_t at) {
  while (at < text.size() && IsDigit(text[at])) ++at;
  return at;
}

// Length of the name that nvidia-smi gives a device at the beginning of the text: GPU0, NIC12,
// mlx5_3, mlx5_bond_0. 0 for none.
std::size_t KnownNameLength(std::string_view text) {
  if (text.starts_with("GPU") || text.starts_with("NIC")) {
    const std::size_t end = SkipDigits(text, 3);
    if (end == 3) return 0;
    // "GPU0/1": the second tile of the first card.
    const std::size_t tile = text.substr(end).starts_with('/') ? SkipDigits(text, end + 1) : end;
    return tile > end + 1 ? tile : end;
  }
  if (!text.starts_with("mlx")) return 0;
  std::size_t at = SkipDigits(text, 3);
  if (at >= text.size() || text[at] != '_') return 0;
  ++at;
  const std::size_t word = at;
  while (at < text.size() && IsLower(text[at])) ++at;
  if (at > word) {
    if (at >= text.size() || text[at] != '_') return 0;
    ++at;
  }
  const std::size_t end = SkipDigits(text, at);
  return end > at ? end : 0;
}

bool IsPlainName(std::string_view word) {
  return !word.empty() && (IsLower(word[0]) || (word[0] >= 'A' && word[0] <= 'Z')) &&
         std::ranges::all_of(word, [](char c) {
           return IsDigit(c) || IsLower(c) || (c >= 'A' && c <= 'Z') || c == '_' || c == '.';
         });
}

// Adds the device names of one word, which may be several glued ones.
bool AddNames(std::string_view word, Header& header) {
  const auto add = [&header](std::string_view name) {
    if (name.starts_with("GPU")) {
      if (!header.nics.empty()) return false;  // GPUs come first
      header.gpus.emplace_back(name);
    } else {
      header.nics.emplace_back(name);
    }
    return true;
  };
  std::size_t names = 0;
  std::string_view rest = word;
  while (const std::size_t length = KnownNameLength(rest)) {
    if (!add(rest.substr(0, length))) return false;
    rest.remove_prefix(length);
    if (++names > 1) header.glued = true;
  }
  if (rest.empty()) return true;
  return names == 0 && !header.gpus.empty() && IsPlainName(rest) && add(rest);
}

void ReadTail(std::string_view text, std::size_t tail, Header& header) {
  header.cpu_at = text.find("CPU", tail);
  header.cpu = header.cpu_at != std::string_view::npos;
  const std::size_t gpu_numa = text.find("GPU NUMA", tail);
  header.gpu_numa = gpu_numa != std::string_view::npos;
  header.numa_at = text.find("NUMA", tail);
  header.numa =
      header.numa_at != std::string_view::npos && (!header.gpu_numa || header.numa_at < gpu_numa);
}

bool NamesAreDistinct(const Header& header) {
  std::vector<std::string_view> names(header.gpus.begin(), header.gpus.end());
  names.insert(names.end(), header.nics.begin(), header.nics.end());
  std::ranges::sort(names);
  return std::ranges::adjacent_find(names) == names.end();
}

std::optional<Header> ReadMarkdownHeader(const Line& line) {
  Header header;
  header.markdown = true;
  int device = 0;
  for (const std::string& field : MarkdownFields(line.text)) {
    if (KnownNameLength(field) == field.size() && !field.empty()) {
      if (!AddNames(field, header)) return std::nullopt;
      header.columns.push_back(device++);
    } else if (field.starts_with("CPU")) {
      header.columns.push_back(Header::kCpuAffinity);
    } else if (field.starts_with("NUMA")) {
      header.columns.push_back(Header::kNumaAffinity);
    } else {
      header.columns.push_back(field.empty() ? Header::kRowName : Header::kOther);
    }
  }
  if (header.gpus.empty() || !NamesAreDistinct(header)) return std::nullopt;
  if (std::ranges::find(header.columns, Header::kRowName) == header.columns.end()) {
    return std::nullopt;
  }
  return header;
}

// The NVLinks of "NV12"; 0 for what is none.
int NvlinksOf(std::string_view text, std::size_t& length) {
  const std::size_t end = std::min(SkipDigits(text, 2), std::size_t{4});
  int links = 0;
  for (const char digit : text.substr(2, end - 2)) links = links * 10 + (digit - '0');
  length = end;
  return links <= kMaxNvlinks ? links : 0;
}

// How many CPUs the range "a-b" has; 0 for what is no range.
std::int64_t LengthOf(std::string_view range) {
  const std::size_t dash = range.find('-');
  if (dash == std::string_view::npos) return 0;
  constexpr std::int64_t kMost = 1'000'000;
  const auto first = ParseInt(range.substr(0, dash), 0, kMost);
  const auto last = ParseInt(range.substr(dash + 1), 0, kMost);
  return first && last && *last >= *first ? *last - *first + 1 : 0;
}

// Whether the last digit of a CPU list is the NUMA node, glued to it: "0-45,92-1370" is CPUs
// 0-45,92-137 and node 0, because the ranges of a core's two threads are equally long.
bool EndsWithGluedNode(std::string_view cpus) {
  const std::size_t comma = cpus.rfind(',');
  if (comma == std::string_view::npos) return false;
  const std::int64_t first = LengthOf(cpus.substr(0, cpus.find(',')));
  const std::string_view last = cpus.substr(comma + 1);
  return first > 0 && LengthOf(last) != first && LengthOf(last.substr(0, last.size() - 1)) == first;
}

// The one affinity word of a row that should have two goes to the column that it stands under.
void AssignByPlace(const Header& header, std::size_t at, std::string_view word, Affinity& result) {
  if (EndsWithGluedNode(word)) {
    result.cpu = word.substr(0, word.size() - 1);
    result.numa = word.substr(word.size() - 1);
    return;
  }
  const auto distance = [at](std::size_t column) {
    return at > column ? at - column : column - at;
  };
  const bool numa = distance(header.numa_at) < distance(header.cpu_at);
  (numa ? result.numa : result.cpu) = word;
}

}  // namespace

Line CleanLine(std::string_view text, int number) {
  Line line;
  line.number = number;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      line.had_escape = true;
      while (i < text.size() && !IsLower(text[i]) && !(text[i] >= 'A' && text[i] <= 'Z')) ++i;
    } else if (text[i] != '\r') {
      line.text += text[i];
    }
  }
  // "GPU 0/1", as xpu-smi names a device.
  for (std::size_t at = 0; (at = line.text.find("GPU ", at)) != std::string::npos; at += 4) {
    const std::size_t end = SkipDigits(line.text, at + 4);
    if (end > at + 4 && end < line.text.size() && line.text[end] == '/') line.text.erase(at + 3, 1);
  }
  for (char& c : line.text) {
    if (c == '#' || c == '>') {
      line.had_prefix = true;
      c = ' ';
    } else if (kBlanks.find(c) == std::string_view::npos) {
      break;
    }
  }
  return line;
}

std::optional<Header> ReadHeader(const Line& line) {
  const std::string_view text = line.text;
  const std::string_view trimmed = Trimmed(text);
  if (trimmed.starts_with('|')) return ReadMarkdownHeader(line);
  if (!trimmed.starts_with("GPU") || KnownNameLength(trimmed) == 0) return std::nullopt;
  std::size_t tail = std::min({text.find("CPU"), text.find("NUMA"), text.find("GPU NUMA")});
  tail = std::min(tail, text.size());
  Header header;
  for (const std::string_view word : Words(text.substr(0, tail))) {
    std::size_t at = 0;
    const Cell cell = ReadCell(word, at);
    if (cell.valid || !AddNames(word, header)) return std::nullopt;
  }
  if (!NamesAreDistinct(header)) return std::nullopt;
  ReadTail(text, tail, header);
  return header;
}

Cell ReadCell(std::string_view text, std::size_t& at) {
  at = std::min(text.find_first_not_of(kBlanks, at), text.size());
  const std::string_view rest = text.substr(at);
  Cell cell;
  std::size_t length = 0;
  constexpr std::array<std::string_view, 8> kNames = {"PIX", "PXB", "PHB", "NODE",
                                                      "SYS", "SOC", "PSB", "PCIE"};
  if (rest.starts_with("NV")) {
    if (const int links = NvlinksOf(rest, length); links > 0) {
      cell.link.fabric = LinkType::kNvlink;
      cell.link.fabric_links = static_cast<std::uint8_t>(links);
      cell.valid = true;
    }
  } else if (rest.starts_with("XGMI") || rest.starts_with("HCCS")) {
    cell.link.fabric = rest.front() == 'H' ? LinkType::kHccs : LinkType::kXgmi;
    cell.link.fabric_links = 1;
    cell.valid = true;
    length = 4;
  } else if (rest.starts_with("XL") || rest.starts_with("MDF")) {
    cell.link.fabric = LinkType::kXelink;
    cell.link.fabric_links = 1;
    cell.valid = true;
    length = std::min(rest.find_first_of(kBlanks), rest.size());
  } else if (rest == "S" || rest.starts_with("S ") || rest.starts_with("S\t") ||
             rest.starts_with("SELF")) {
    cell.valid = cell.self = true;
    length = rest.starts_with("SELF") ? 4 : 1;
  } else if (rest.starts_with('X') || rest == "0" || rest.starts_with("0 ") ||
             rest.starts_with("0\t")) {
    cell.valid = cell.self = true;
    length = 1;
  }
  for (const std::string_view name : kNames) {
    if (cell.valid || !rest.starts_with(name)) continue;
    cell.link.pcie = *ParsePcieRelation(name);
    cell.valid = true;
    length = name.size();
  }
  if (!cell.valid) {
    cell.text = std::string(rest.substr(0, std::min(rest.find_first_of(kBlanks), std::size_t{24})));
    return cell;
  }
  cell.text = std::string(rest.substr(0, length));
  at += length;
  cell.glued = at < text.size() && kBlanks.find(text[at]) == std::string_view::npos;
  return cell;
}

Affinity ReadAffinity(const Header& header, std::string_view text, std::size_t at) {
  Affinity result;
  const std::string_view rest = text.substr(std::min(at, text.size()));
  if (const std::size_t tab = rest.find('\t'); tab != std::string_view::npos) {
    std::string_view fields = rest.substr(tab + 1);
    const auto next = [&fields] {
      const std::size_t end = std::min(fields.find('\t'), fields.size());
      const std::string_view field = Trimmed(fields.substr(0, end));
      fields.remove_prefix(std::min(end + 1, fields.size()));
      return std::string(field);
    };
    if (header.cpu) result.cpu = next();
    if (header.numa) result.numa = next();
    return result;
  }
  std::vector<std::string_view> words = Words(rest);
  const std::size_t wanted =
      static_cast<std::size_t>(header.cpu) + static_cast<std::size_t>(header.numa);
  if (header.gpu_numa && !words.empty() && words.size() <= wanted && words.back() == "N/A") {
    words.pop_back();  // the last column, which is never empty; another one is
  }
  if (words.size() == 1 && wanted == 2) {
    AssignByPlace(header, static_cast<std::size_t>(words[0].data() - text.data()), words[0],
                  result);
    return result;
  }
  std::size_t taken = 0;
  if (header.cpu && taken < words.size()) result.cpu = words[taken++];
  if (header.numa && taken < words.size()) result.numa = words[taken];
  return result;
}

std::vector<std::string> MarkdownFields(std::string_view text) {
  text = Trimmed(text);
  std::vector<std::string> fields;
  if (!text.starts_with('|')) return fields;
  text.remove_prefix(1);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('|'), text.size());
    fields.emplace_back(Trimmed(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return fields;
}

std::vector<std::string_view> Words(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t at = text.find_first_not_of(kBlanks); at != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(kBlanks, at), text.size());
    words.push_back(text.substr(at, end - at));
    at = text.find_first_not_of(kBlanks, end);
  }
  return words;
}

std::string FirstWord(std::string_view text) {
  const std::vector<std::string_view> words = Words(text);
  return words.empty() ? std::string() : std::string(words.front());
}

std::string_view DeviceNameAt(std::string_view text) {
  text = Trimmed(text);
  return text.substr(0, KnownNameLength(text));
}

}  // namespace berth::topo_text
