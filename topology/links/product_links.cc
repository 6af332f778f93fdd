// SPDX-License-Identifier: Apache-2.0
#include "topology/links/product_links.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

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

}  // namespace

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
