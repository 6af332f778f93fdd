// SPDX-License-Identifier: Apache-2.0
#include "node/facts/pci_tree.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "node/facts/node_facts.h"

namespace berth::node {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostSysfsBytes = std::size_t{64} << 10;
constexpr std::size_t kMostEntries = 4096;  // of a folder: more are not looked at
constexpr int kMostNumaNodes = 1024;
constexpr std::size_t kMostCpuListBytes = 200;

// Hexadecimal digits alone, at most 8; nullopt otherwise.
std::optional<std::uint32_t> Hex(std::string_view text) {
  if (text.empty() || text.size() > 8) return std::nullopt;
  std::uint32_t value = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isxdigit(byte) == 0) return std::nullopt;
    const int digit = std::isdigit(byte) != 0 ? c - '0' : std::tolower(byte) - 'a' + 10;
    value = value << 4 | static_cast<std::uint32_t>(digit);
  }
  return value;
}

// "mlx5_10" -> ("mlx5_", 10): so that it comes after mlx5_2.
std::pair<std::string, std::int64_t> NaturalKey(const std::string& name) {
  const std::size_t end = name.find_last_not_of("0123456789") + 1;
  const auto number = ParseInt(name.substr(end), 0, std::int64_t{1} << 40);
  return {name.substr(0, end), number ? *number : -1};
}

}  // namespace

std::string PciAddress(std::uint32_t domain, std::uint32_t bus, std::uint32_t device,
                       std::uint32_t function) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%04x:%02x:%02x.%x", domain, bus & 0xff, device & 0x1f,
                function & 7);
  return text.data();
}

std::string PciAddress(std::string_view text) {
  text = Trimmed(text);
  const std::size_t dot = text.rfind('.');
  if (dot == std::string_view::npos) return "";
  const std::size_t device_at = text.rfind(':', dot);
  if (device_at == std::string_view::npos || device_at == 0) return "";
  const std::size_t bus_at = text.rfind(':', device_at - 1);
  const bool has_domain = bus_at != std::string_view::npos;
  const std::size_t bus_from = has_domain ? bus_at + 1 : 0;
  const auto domain = Hex(has_domain ? text.substr(0, bus_at) : "0");
  const auto bus = Hex(text.substr(bus_from, device_at - bus_from));
  const auto device = Hex(text.substr(device_at + 1, dot - device_at - 1));
  const auto function = Hex(text.substr(dot + 1));
  if (!domain || !bus || !device || !function) return "";
  if (*bus > 0xff || *device > 0x1f || *function > 7) return "";
  return PciAddress(*domain, *bus, *device, *function);
}

std::string PciTree::DeviceFile(const std::string& pci, const char* file) const {
  if (pci.empty()) return "";
  const auto text = ReadFile(root_ + "/bus/pci/devices/" + pci + "/" + file, kMostSysfsBytes);
  return text ? std::string(Trimmed(*text)) : "";
}

std::optional<int> PciTree::NumaNode(const std::string& pci) const {
  const auto node = ParseInt(DeviceFile(pci, "numa_node"), 0, kMostNumaNodes - 1);
  if (!node) return std::nullopt;  // -1: the firmware does not say
  return static_cast<int>(*node);
}

std::string PciTree::LocalCpus(const std::string& pci) const {
  std::string cpus = DeviceFile(pci, "local_cpulist");
  const bool is_list = cpus.find_first_not_of("0123456789,-") == std::string::npos;
  return is_list && cpus.size() <= kMostCpuListBytes ? cpus : "";
}

std::vector<std::string> PciTree::PathOf(const std::string& pci) const {
  std::error_code failed;
  const fs::path path = fs::canonical(root_ + "/bus/pci/devices/" + pci, failed);
  std::vector<std::string> parts;
  if (failed || pci.empty()) return parts;
  for (const fs::path& part : path) {
    if (!parts.empty() || part.string().starts_with("pci")) parts.push_back(part.string());
  }
  return parts;
}

LinkType PciTree::Between(const std::string& a, const std::string& b) const {
  const std::vector<std::string> path_a = PathOf(a), path_b = PathOf(b);
  if (path_a.empty() || path_b.empty()) return LinkType::kUnknown;
  std::size_t common = 0;
  while (common < std::min(path_a.size(), path_b.size()) && path_a[common] == path_b[common]) {
    ++common;
  }
  if (common == 0) {
    const auto numa_a = NumaNode(a), numa_b = NumaNode(b);
    if (!numa_a || !numa_b) return LinkType::kUnknown;
    return *numa_a == *numa_b ? LinkType::kNode : LinkType::kSys;
  }
  if (common == 1) return LinkType::kPhb;
  // Below one port: at most a port of the same switch and the device are left of each path.
  const bool one_switch = path_a.size() - common <= 2 && path_b.size() - common <= 2;
  return one_switch ? LinkType::kPix : LinkType::kPxb;
}

std::vector<Nic> PciTree::Nics(std::size_t& more) const {
  std::vector<Nic> nics;
  std::error_code failed;
  fs::directory_iterator at(root_ + "/class/infiniband", failed);
  for (std::size_t seen = 0; !failed && at != fs::directory_iterator() && seen < kMostEntries;
       ++seen) {
    std::error_code not_there;
    const fs::path device = fs::canonical(at->path() / "device", not_there);
    std::string pci = not_there ? "" : PciAddress(device.filename().string());
    if (!pci.empty() && !fs::exists(device / "physfn", not_there)) {
      nics.push_back({at->path().filename().string(), std::move(pci)});
    }
    at.increment(failed);
  }
  std::ranges::sort(nics, {}, [](const Nic& nic) { return NaturalKey(nic.name); });
  more = nics.size() > kMostFactNics ? nics.size() - kMostFactNics : 0;
  nics.resize(nics.size() - more);
  return nics;
}

}  // namespace berth::node
