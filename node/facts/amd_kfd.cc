// SPDX-License-Identifier: Apache-2.0
#include "node/facts/amd_kfd.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/number.h"
#include "base/text.h"
#include "node/facts/pci_tree.h"

namespace berth::node {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kAmd = 0x1002, kXgmiLink = 11;
constexpr std::size_t kMostPropertyBytes = std::size_t{16} << 10;
constexpr std::int64_t kMostNodes = 1024;

using Properties = std::map<std::string, std::int64_t, std::less<>>;

// Lines "name number"; what is no number is left out.
Properties ReadProperties(const fs::path& file) {
  Properties properties;
  const auto text = ReadFile(file.string(), kMostPropertyBytes);
  if (!text) return properties;
  for (const std::string_view line : PartsOf(*text, '\n')) {
    const std::size_t blank = line.find(' ');
    if (blank == std::string_view::npos) continue;
    const auto value =
        ParseInt(Trimmed(line.substr(blank)), 0, std::numeric_limits<std::int64_t>::max());
    if (value) properties.emplace(line.substr(0, blank), *value);
  }
  return properties;
}

std::int64_t ValueOf(const Properties& properties, std::string_view name) {
  const auto found = properties.find(name);
  return found == properties.end() ? 0 : found->second;
}

// The numbers that name the entries of a folder, ascending.
std::vector<std::int64_t> NumbersIn(const fs::path& folder) {
  std::vector<std::int64_t> numbers;
  std::error_code failed;
  fs::directory_iterator at(folder, failed);
  for (; !failed && at != fs::directory_iterator(); at.increment(failed)) {
    const auto number = ParseInt(at->path().filename().string(), 0, kMostNodes - 1);
    if (number) numbers.push_back(*number);
  }
  std::ranges::sort(numbers);
  return numbers;
}

// location_id is bus, device and function in 16 bits.
std::string AddressOf(const Properties& node) {
  const auto location = static_cast<std::uint32_t>(ValueOf(node, "location_id") & 0xffff);
  return PciAddress(static_cast<std::uint32_t>(ValueOf(node, "domain") & 0xffffffff), location >> 8,
                    location >> 3 & 0x1f, location & 7);
}

// How many links are bonded. The kernel gives the bandwidth of one as the least, that of all as the
// most.
std::uint8_t BondedLinks(const Properties& link) {
  const std::int64_t one = ValueOf(link, "min_bandwidth"), all = ValueOf(link, "max_bandwidth");
  const std::int64_t links = one > 0 ? all / one : 1;
  return static_cast<std::uint8_t>(std::clamp<std::int64_t>(links, 1, kMaxNvlinks));
}

class Kfd {
 public:
  explicit Kfd(fs::path nodes) : nodes_(std::move(nodes)) {}

  void FindGpus() {
    for (const std::int64_t number : NumbersIn(nodes_)) {
      const Properties node = ReadProperties(FolderOf(number) / "properties");
      if (ValueOf(node, "simd_count") == 0 || ValueOf(node, "vendor_id") != kAmd) continue;
      if (found_.gpus.size() == static_cast<std::size_t>(kMaxGpus)) {
        return Refuse("want at most " + std::to_string(kMaxGpus) + " GPUs, got more");
      }
      const std::string address = AddressOf(node);
      if (std::ranges::any_of(found_.gpus,
                              [&](const FoundGpu& gpu) { return SameCard(gpu, address); })) {
        return Refuse("the GPUs are partitioned");
      }
      positions_[number] = found_.gpus.size();
      found_.gpus.push_back({address, address, static_cast<int>(found_.gpus.size()), false});
    }
  }

  void FindLinks() {
    found_.links.assign(found_.gpus.size() * found_.gpus.size(), Link{});
    for (const auto& [number, position] : positions_) {
      const fs::path links = FolderOf(number) / "io_links";
      for (const std::int64_t index : NumbersIn(links)) {
        const Properties link = ReadProperties(links / std::to_string(index) / "properties");
        const auto peer = positions_.find(ValueOf(link, "node_to"));
        if (ValueOf(link, "type") != kXgmiLink || peer == positions_.end()) continue;
        if (peer->second == position) continue;
        Link& cell = found_.link(position, peer->second);
        cell.fabric = LinkType::kXgmi;
        cell.fabric_links = BondedLinks(link);
        found_.link(peer->second, position) = cell;
      }
    }
  }

  FoundMachine Take() && { return std::move(found_); }

 private:
  [[nodiscard]] fs::path FolderOf(std::int64_t number) const {
    return nodes_ / std::to_string(number);
  }

  // Parts of one card differ in the function of its address alone.
  static bool SameCard(const FoundGpu& gpu, const std::string& address) {
    return gpu.pci.substr(0, gpu.pci.rfind('.')) == address.substr(0, address.rfind('.'));
  }

  void Refuse(const std::string& why) {
    found_.gpus.clear();
    positions_.clear();
    found_.problems.push_back("AMD GPUs: " + why + ": none is described");
  }

  const fs::path nodes_;
  FoundMachine found_;
  std::map<std::int64_t, std::size_t> positions_;  // of a node in found_.gpus
};

}  // namespace

FoundMachine ProbeAmdKfd(const std::string& sys_root) {
  Kfd kfd(fs::path(sys_root) / "class/kfd/kfd/topology/nodes");
  kfd.FindGpus();
  kfd.FindLinks();
  return std::move(kfd).Take();
}

}  // namespace berth::node
