// SPDX-License-Identifier: Apache-2.0
#include "topology/links/wiring.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"

namespace berth {
namespace {

// Where the vendor's own scheduler cuts the NPUs of a node into groups, and that it does not.
constexpr std::string_view kAscendRings =
    "Huawei's Ascend scheduler plugin, README: two HCCS rings of four, nothing between them";
constexpr std::string_view kAscendEight =
    "Huawei's Ascend scheduler plugin, module910bx8: any of eight, one HCCS group";
constexpr std::string_view kAscendSixteen =
    "Huawei's Ascend scheduler plugin, module910bx16: HCCS groups of 0-7 and 8-15";
constexpr std::string_view kMi300x =
    "ROCm/rccl, tools/topo_expl topo_8p_940.xml: a machine of eight 0x74a1";
constexpr std::string_view kAsMi300x = "MI300X: a platform of the same links";
constexpr LinkType kXgmi = LinkType::kXgmi, kHccs = LinkType::kHccs;

constexpr std::array<ProductLinks, 30> kProductLinks = {{
    {"A100-SXM4-40GB", 8, 12, false, "topo -m of an AWS p4d.24xlarge"},
    {"A100-SXM4-40GB", 4, 4, true, "HGX A100 4-GPU; four of an 8-GPU board have NV12"},
    {"A100-SXM4-80GB", 8, 12, false, "topo -m of a DGX A100, NVIDIA/nccl issue 1505"},
    {"A100-SXM4-80GB", 4, 4, true, "HGX A100 4-GPU; four of an 8-GPU board have NV12"},
    {"A800-SXM4-80GB", 8, 8, false, "topo -m of 8 A800-SXM4-80GB"},
    {"B200", 8, 18, false, "topo -m of an HGX B200, vllm-project/vllm issue 16336"},
    {"GB200", 4, 18, false, "topo -m of a GB200 compute tray"},
    {"H100-80GB-HBM3", 8, 18, false, "stas00/ml-engineering, training/performance/README.md"},
    {"H100-80GB-HBM3", 4, 6, true,
     "HGX H100 4-GPU, NVIDIA/nccl issue 1617; four of an 8-GPU board have NV18"},
    {"H20", 8, 18, true, "as H100: 18 NVLinks to the switches"},
    {"H200", 8, 18, true, "as H100: 18 NVLinks to the switches"},
    {"H200", 4, 6, true, "as H100"},
    {"H800", 8, 8, true, "an H100 with 8 of its NVLinks"},
    {"Tesla-V100-SXM3-32GB", 16, 6, false,
     "DGX-2, NVLink bandwidths in hwloc's tests; NVIDIA/nccl-tests issue 78"},
    {"MI300X", 8, 1, false, kMi300x, kXgmi},
    {"MI308X", 8, 1, true, kAsMi300x, kXgmi},
    {"MI325", 8, 1, true, kAsMi300x, kXgmi},
    {"MI350", 8, 1, true, kAsMi300x, kXgmi},
    {"MI355", 8, 1, true, kAsMi300x, kXgmi},
    {"910A", 8, 1, false, kAscendRings, kHccs, 4},
    {"module", 8, 1, false, kAscendRings, kHccs, 4},
    {"910B1", 8, 1, true, kAscendEight, kHccs},
    {"910B2", 8, 1, true, kAscendEight, kHccs},
    {"910B3", 8, 1, true, kAscendEight, kHccs},
    {"910B4", 8, 1, true, kAscendEight, kHccs},
    {"module-910b-8", 8, 1, true, kAscendEight, kHccs},
    {"910B1", 16, 1, false, kAscendSixteen, kHccs, 8},
    {"910B2", 16, 1, false, kAscendSixteen, kHccs, 8},
    {"910B3", 16, 1, false, kAscendSixteen, kHccs, 8},
    {"module-910b-16", 16, 1, false, kAscendSixteen, kHccs, 8},
}};

struct ProductSpeed {
  std::string_view prefix;
  int nvlink;  // MB/s of each, in one direction
};
constexpr std::array<ProductSpeed, 8> kSpeeds = {{{"A40", 14'062},
                                                  {"B200", 50'000},
                                                  {"B300", 50'000},
                                                  {"GB200", 50'000},
                                                  {"GB300", 50'000},
                                                  {"GeForce-RTX-3090", 14'062},
                                                  {"RTX-A6000", 14'062},
                                                  {"Tesla-P100", 20'000}}};

std::string_view WithoutAnyVendor(std::string_view product) {
  for (const std::string_view vendor : {"NVIDIA-", "AMD_Instinct_", "Ascend"}) {
    if (product.starts_with(vendor)) return product.substr(vendor.size());
  }
  return product;
}

// Whether the row is of that product, without its vendor.
bool IsOf(const ProductLinks& row, std::string_view product) {
  const bool by_beginning = row.fabric == kXgmi || row.product.starts_with("910B");
  return by_beginning ? product.starts_with(row.product) : product == row.product;
}

constexpr int kMostScoredNvlinks = 18, kNvlinkScore = 100, kRelationScore = 10;

// Numbers equal keys alike, by first appearance.
template <class Key>
std::vector<int> GroupsOf(const std::vector<Key>& keys) {
  std::map<Key, int> numbers;
  std::vector<int> groups;
  for (const Key& key : keys) {
    groups.push_back(numbers.try_emplace(key, static_cast<int>(numbers.size())).first->second);
  }
  return groups;
}

std::optional<std::vector<int>> GroupsByRelation(const LinkMatrix& matrix) {
  std::vector<int> group(static_cast<std::size_t>(matrix.gpu_count()));
  for (int gpu = 0; gpu < matrix.gpu_count(); ++gpu) {
    int& own = group[static_cast<std::size_t>(gpu)];
    own = gpu;
    for (int other = 0; other < gpu; ++other) {
      const LinkType relation = matrix.link(gpu, other).pcie;
      if (relation == LinkType::kUnknown) return std::nullopt;
      if (relation > LinkType::kSys) own = std::min(own, group[static_cast<std::size_t>(other)]);
    }
  }
  return GroupsOf(group);
}

// By group: how many of the set are in it.
std::array<int, kMaxGpus> GroupSizes(const Wiring& wiring, GpuMask set) {
  std::array<int, kMaxGpus> sizes{};
  ForEachGpu(set, [&](int gpu) {
    ++sizes[static_cast<std::size_t>(wiring.numa[static_cast<std::size_t>(gpu)])];
  });
  return sizes;
}

bool UnderOneRoot(LinkType pcie) { return pcie >= LinkType::kPxb && pcie <= LinkType::kBoard; }

bool UnderOneRoot(const LinkMatrix& matrix, int a, int b) {
  const LinkType pcie = matrix.link(a, b).pcie;
  if (a == b || pcie != LinkType::kUnknown) return a == b || UnderOneRoot(pcie);
  for (int nic = 0; nic < static_cast<int>(matrix.nics.size()); ++nic) {
    if (UnderOneRoot(matrix.gpu_nic(a, nic).pcie) && UnderOneRoot(matrix.gpu_nic(b, nic).pcie)) {
      return true;
    }
  }
  return false;
}

LinkType BestNic(const LinkMatrix& matrix, int gpu) {
  LinkType best = LinkType::kUnknown;
  for (int nic = 0; nic < static_cast<int>(matrix.nics.size()); ++nic) {
    best = std::max(best, matrix.gpu_nic(gpu, nic).pcie);
  }
  return best;
}

constexpr int kMostExact = 16;

// The set of k that most of the masks contain; 0 where none has k.
GpuMask BestOfAll(std::span<const GpuMask> free, int gpus, int k) {
  std::vector<int> holders(std::size_t{1} << gpus, 0);
  for (const GpuMask mask : free) ++holders[mask];
  // holders[set]: from "is exactly this" to "contains this".
  for (int gpu = 0; gpu < gpus; ++gpu) {
    for (std::size_t set = 0; set < holders.size(); ++set) {
      if ((set & GpuBit(gpu)) == 0) holders[set] += holders[set | GpuBit(gpu)];
    }
  }
  std::size_t best = 0;
  int most = 0;
  for (std::size_t set = 0; set < holders.size(); ++set) {
    if (std::popcount(set) != k || holders[set] <= most) continue;
    best = set;
    most = holders[set];
  }
  return best;
}

GpuMask OneByOne(std::span<const GpuMask> free, int gpus, int k) {
  std::vector<GpuMask> left;
  std::ranges::copy_if(free, std::back_inserter(left),
                       [k](GpuMask mask) { return std::popcount(mask) >= k; });
  GpuMask rails = 0;
  for (int taken = 0; taken < k && !left.empty(); ++taken) {
    int best = -1;
    std::ptrdiff_t most = 0;
    for (int gpu = 0; gpu < gpus; ++gpu) {
      if ((rails & GpuBit(gpu)) != 0) continue;
      const auto has =
          std::ranges::count_if(left, [gpu](GpuMask mask) { return (mask & GpuBit(gpu)) != 0; });
      if (has <= most) continue;
      best = gpu;
      most = has;
    }
    rails |= GpuBit(best);
    std::erase_if(left, [rails](GpuMask mask) { return (mask & rails) != rails; });
  }
  return rails;
}

// k GPUs of one node, as many of the rails as there are.
GpuMask OnNode(GpuMask free, GpuMask rails, int k) {
  if (std::popcount(free) < k) return 0;
  GpuMask given = free & rails;
  for (GpuMask rest = free & ~rails; std::popcount(given) < k; rest &= rest - 1) {
    given |= rest & (~rest + 1);
  }
  return given;
}

}  // namespace

int LinkSpeeds::Of(const Link& link) const {
  if (link.fabric == LinkType::kNvlink) return nvlink * link.fabric_links;
  const bool as_xgmi = link.fabric == LinkType::kXgmi || link.fabric == LinkType::kXelink;
  if (as_xgmi) return xgmi * link.fabric_links;
  if (link.fabric == LinkType::kHccs) return hccs * link.fabric_links;
  switch (link.pcie) {
    case LinkType::kBoard:
      return board;
    case LinkType::kPix:
      return pix;
    case LinkType::kPxb:
      return pxb;
    case LinkType::kPhb:
      return phb;
    case LinkType::kNode:
      return node;
    default:
      return sys;
  }
}

LinkSpeeds SpeedsOfPcie(int generation) {
  LinkSpeeds speeds;
  speeds.pix = generation <= 3 ? 12'000 : generation == 4 ? 24'000 : 48'000;
  speeds.board = speeds.pix * 105 / 100;
  speeds.pxb = speeds.pix * 95 / 100;
  speeds.phb = speeds.pix * 5 / 6;
  speeds.node = speeds.phb * 95 / 100;
  const int socket = generation <= 3 ? 10'000 : generation == 4 ? 16'000 : 22'000;
  speeds.sys = std::min(speeds.phb * 90 / 100, socket);
  return speeds;
}

LinkSpeeds SpeedsFor(const LinkMatrix& matrix) {
  int bond = 0;
  for (const Link& link : matrix.cells) {
    if (link.fabric == LinkType::kNvlink) bond = std::max(bond, int{link.fabric_links});
  }
  return SpeedsOfPcie(bond >= 13 ? 5 : bond >= 1 && bond <= 3 ? 3 : 4);
}

int Wiring::Span(GpuMask set) const {
  GpuMask groups = 0;
  ForEachGpu(set, [&](int gpu) { groups |= GpuBit(numa[static_cast<std::size_t>(gpu)]); });
  return std::popcount(groups);
}

int Wiring::LeastSpan(int size) const {
  std::array<int, kMaxGpus> members = GroupSizes(*this, AllGpus(gpus));
  std::sort(members.begin(), members.begin() + gpus, std::greater<>());
  int span = 0;
  for (int held = 0; held < size; ++span) held += members[static_cast<std::size_t>(span)];
  return span;
}

int Wiring::MostOfOneGroup(GpuMask set) const { return std::ranges::max(GroupSizes(*this, set)); }

bool Wiring::Uniform() const {
  for (int a = 0; a < gpus; ++a) {
    if (numa[static_cast<std::size_t>(a)] != 0) return false;
    for (int b = 0; b < a; ++b) {
      if (Between(a, b) != Between(0, 1)) return false;
    }
  }
  return true;
}

std::optional<std::vector<int>> NumaGroupsOf(const LinkMatrix& matrix) {
  std::vector<int> nodes;
  for (const std::string& text : matrix.numa_affinity) {
    if (const auto node = NumaNodeOf(text)) nodes.push_back(*node);
  }
  if (nodes.size() == matrix.gpus.size()) return GroupsOf(nodes);
  const auto blank = [](const std::string& text) { return text.empty() || text == "N/A"; };
  if (std::ranges::none_of(matrix.cpu_affinity, blank)) return GroupsOf(matrix.cpu_affinity);
  return GroupsByRelation(matrix);
}

std::vector<GpuMask> NumaNodesOf(const LinkMatrix& matrix) {
  const std::optional<std::vector<int>> groups = NumaGroupsOf(matrix);
  if (!groups) return {};
  std::map<int, GpuMask> by_number;
  for (std::size_t gpu = 0; gpu < groups->size(); ++gpu) {
    const bool are_numbered = matrix.numa_affinity.size() == groups->size();
    const auto numbered = are_numbered ? NumaNodeOf(matrix.numa_affinity[gpu]) : std::nullopt;
    by_number[numbered.value_or((*groups)[gpu])] |= GpuBit(static_cast<int>(gpu));
  }
  std::vector<GpuMask> nodes;
  for (const auto& [number, gpus] : by_number) nodes.push_back(gpus);
  return nodes;
}

Wiring WiringOf(const LinkMatrix& matrix, const LinkSpeeds& speeds) {
  Wiring wiring;
  wiring.gpus = matrix.gpu_count();
  for (int a = 0; a < wiring.gpus; ++a) {
    for (int b = 0; b < wiring.gpus; ++b) {
      wiring.megabytes_per_s.push_back(a == b ? 0 : speeds.Of(matrix.link(a, b)));
    }
  }
  wiring.numa = NumaGroupsOf(matrix).value_or(std::vector<int>(matrix.gpus.size(), 0));
  return wiring;
}

std::vector<Surroundings> SurroundingsOf(const LinkMatrix& matrix) {
  const std::optional<std::vector<int>> numa = NumaGroupsOf(matrix);
  const auto group = [&numa](int gpu) { return numa ? (*numa)[static_cast<std::size_t>(gpu)] : 0; };
  std::vector<Surroundings> all(matrix.gpus.size());
  for (int gpu = 0; gpu < matrix.gpu_count(); ++gpu) {
    Surroundings& around = all[static_cast<std::size_t>(gpu)];
    around.nic = BestNic(matrix, gpu);
    for (int other = 0; other < matrix.gpu_count(); ++other) {
      const bool linked = matrix.link(gpu, other).fabric != LinkType::kUnknown;
      if (linked || other == gpu) around.fabric |= GpuBit(other);
      if (UnderOneRoot(matrix, gpu, other)) around.root |= GpuBit(other);
      if (group(other) == group(gpu)) around.numa |= GpuBit(other);
    }
  }
  return all;
}

RailChoice AlignRails(std::span<const GpuMask> free, int k) {
  BERTH_CHECK(k >= 1 && k <= 64);
  GpuMask any = 0;
  for (const GpuMask mask : free) any |= mask;
  const int gpus = 64 - std::countl_zero(any);
  RailChoice choice;
  if (gpus >= k) {
    choice.rails = gpus <= kMostExact ? BestOfAll(free, gpus, k) : OneByOne(free, gpus, k);
  }
  for (const GpuMask mask : free) {
    choice.nodes.push_back(OnNode(mask, choice.rails, k));
    choice.aligned += choice.rails != 0 && choice.nodes.back() == choice.rails ? 1U : 0U;
  }
  return choice;
}

std::span<const ProductLinks> ProductLinksCatalogue() { return kProductLinks; }

std::optional<LinkMatrix> LinksOfProduct(std::string_view product, int gpus) {
  const auto row = std::ranges::find_if(kProductLinks, [&](const ProductLinks& links) {
    return links.gpus == gpus && IsOf(links, WithoutAnyVendor(product));
  });
  if (row == kProductLinks.end()) return std::nullopt;
  std::vector<std::string> names;
  for (int gpu = 0; gpu < gpus; ++gpu) names.push_back("GPU" + std::to_string(gpu));
  auto matrix = MakeLinkMatrix(std::move(names), {});
  if (!matrix) return std::nullopt;
  for (int a = 0; a < gpus; ++a) {
    for (int b = 0; b < gpus; ++b) {
      if (a == b || (row->group > 0 && a / row->group != b / row->group)) continue;
      matrix->link(a, b) = {LinkType::kUnknown, row->fabric, static_cast<std::uint8_t>(row->links)};
    }
  }
  return *std::move(matrix);
}

LinkSpeeds SpeedsFor(const LinkMatrix& matrix, std::string_view product) {
  LinkSpeeds speeds = SpeedsFor(matrix);
  const auto known = std::ranges::find_if(kSpeeds, [&](const ProductSpeed& speed) {
    return WithoutAnyVendor(product).starts_with(speed.prefix);
  });
  if (known != kSpeeds.end()) speeds.nvlink = known->nvlink;
  return speeds;
}

std::optional<Link> LinkOfNvidiaScore(std::int64_t score) {
  const std::int64_t links = score / kNvlinkScore, relation = score % kNvlinkScore;
  const std::int64_t type = relation / kRelationScore;
  if (score < 0 || links > kMostScoredNvlinks || relation % kRelationScore != 0 ||
      type > static_cast<std::int64_t>(LinkType::kBoard)) {
    return std::nullopt;
  }
  Link link;
  link.pcie = static_cast<LinkType>(type);
  if (links > 0) link.fabric = LinkType::kNvlink;
  link.fabric_links = static_cast<std::uint8_t>(links);
  return link;
}

}  // namespace berth
