// SPDX-License-Identifier: Apache-2.0
#include "topology/domains/domain_tree.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace berth {

DomainTree::DomainTree(std::size_t nodes, std::size_t levels,
                       std::span<const std::string_view> values)
    : nodes_(nodes), levels_(levels), parents_{kCluster}, named_{1}, paths_(nodes * levels) {
  BERTH_CHECK(values.size() == nodes * levels);
  const auto row = [&](std::size_t node) { return values.subspan(node * levels, levels); };
  std::vector<std::size_t> sorted(nodes);
  std::iota(sorted.begin(), sorted.end(), std::size_t{0});
  std::ranges::sort(sorted, [&](std::size_t a, std::size_t b) {
    const auto order = std::lexicographical_compare_three_way(row(a).begin(), row(a).end(),
                                                              row(b).begin(), row(b).end());
    return order != 0 ? order < 0 : a < b;
  });
  for (std::size_t level = 0; level < levels; ++level) {
    first_.push_back(static_cast<TopologyDomain>(parents_.size()));
    for (std::size_t i = 0; i < nodes; ++i) {
      const std::size_t node = sorted[i];
      const TopologyDomain parent = level == 0 ? kCluster : DomainOf(node, level - 1);
      // The nodes of one domain follow each other.
      const bool begins =
          i == 0 || parents_.back() != parent || row(sorted[i - 1])[level] != row(node)[level];
      if (begins) {
        parents_.push_back(parent);
        named_.push_back(row(node)[level].empty() ? 0 : 1);
      }
      paths_[node * levels + level] = static_cast<TopologyDomain>(parents_.size() - 1);
    }
  }
  first_.push_back(static_cast<TopologyDomain>(parents_.size()));
  for (std::size_t node = 0; node < nodes; ++node) {
    parents_.push_back(levels == 0 ? kCluster : DomainOf(node, levels - 1));
    named_.push_back(1);
  }
  first_.push_back(static_cast<TopologyDomain>(parents_.size()));
}

std::size_t DomainTree::CountNamed(std::size_t level) const {
  const auto [first, last] = Level(level);
  return static_cast<std::size_t>(
      std::count(named_.begin() + first, named_.begin() + last, char{1}));
}

template <class Sum, class Amount>
std::vector<Sum> DomainTree::SumsOf(std::span<const Amount> amounts) const {
  BERTH_CHECK(amounts.size() == nodes_);
  std::vector<Sum> sums(size(), 0);
  std::ranges::copy(amounts, sums.begin() + NodeVertex(0));
  for (std::size_t i = size() - 1; i > 0; --i) sums[parents_[i]] += sums[i];
  return sums;
}

std::vector<std::int64_t> DomainTree::SumUp(std::span<const int> amounts) const {
  return SumsOf<std::int64_t>(amounts);
}

std::vector<double> DomainTree::SumUp(std::span<const double> amounts) const {
  return SumsOf<double>(amounts);
}

}  // namespace berth
