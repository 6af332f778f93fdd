// SPDX-License-Identifier: Apache-2.0
#include "topology/links/nvidia_pair_score.h"

#include <algorithm>
#include <array>

namespace berth {
namespace {

constexpr int kMostScoredNvlinks = 18, kNvlinkScore = 100;
constexpr std::array<int, 7> kRelationScores = {0, 10, 20, 30, 40, 50, 60};  // by LinkType

}  // namespace

int NvidiaPairScore(const Link& link) {
  const int links = std::min(int{link.fabric_links}, kMostScoredNvlinks);
  return kRelationScores[static_cast<std::size_t>(link.pcie)] + kNvlinkScore * links;
}

std::optional<Link> LinkOfNvidiaScore(std::int64_t score) {
  const std::int64_t links = score / kNvlinkScore, relation = score % kNvlinkScore;
  const auto found = std::ranges::find(kRelationScores, relation);
  if (score < 0 || links > kMostScoredNvlinks || found == kRelationScores.end()) {
    return std::nullopt;
  }
  Link link;
  link.pcie = static_cast<LinkType>(found - kRelationScores.begin());
  if (links > 0) link.fabric = LinkType::kNvlink;
  link.fabric_links = static_cast<std::uint8_t>(links);
  return link;
}

}  // namespace berth
