// SPDX-License-Identifier: Apache-2.0
#include "topology/links/product_links.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

namespace berth {
namespace {

constexpr std::array<ProductLinks, 14> kCatalogue = {{
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

std::string_view WithoutVendor(std::string_view product) {
  constexpr std::string_view kVendor = "NVIDIA-";
  if (product.starts_with(kVendor)) product.remove_prefix(kVendor.size());
  return product;
}

}  // namespace

std::span<const ProductLinks> ProductLinksCatalogue() { return kCatalogue; }

std::optional<LinkMatrix> LinksOfProduct(std::string_view product, int gpus) {
  const auto row = std::ranges::find_if(kCatalogue, [&](const ProductLinks& links) {
    return links.product == WithoutVendor(product) && links.gpus == gpus;
  });
  if (row == kCatalogue.end()) return std::nullopt;
  std::vector<std::string> names;
  for (int gpu = 0; gpu < gpus; ++gpu) names.push_back("GPU" + std::to_string(gpu));
  auto matrix = MakeLinkMatrix(std::move(names), {});
  if (!matrix) return std::nullopt;
  for (int a = 0; a < gpus; ++a) {
    for (int b = 0; b < gpus; ++b) {
      if (a == b) continue;
      matrix->link(a, b) = {LinkType::kUnknown, LinkType::kNvlink,
                            static_cast<std::uint8_t>(row->nvlinks)};
    }
  }
  return *std::move(matrix);
}

LinkSpeeds SpeedsFor(const LinkMatrix& matrix, std::string_view product) {
  LinkSpeeds speeds = SpeedsFor(matrix);
  const auto known = std::ranges::find_if(kSpeeds, [&](const ProductSpeed& speed) {
    return WithoutVendor(product).starts_with(speed.prefix);
  });
  if (known != kSpeeds.end()) speeds.nvlink = known->nvlink;
  return speeds;
}

}  // namespace berth
