// SPDX-License-Identifier: Apache-2.0
#include "scoring/engine/behind.h"

#include <vector>

#include "base/text.h"
#include "scoring/devices/neighbours.h"

namespace berth {

int Behind::rank() const {
  constexpr int kPods = 1 << 20;  // more than of a workload on a node
  return ((gives_parts ? kPods : 0) + crowd) * (kMostPenalty + 1) + penalty;
}

std::string Behind::text() const {
  std::vector<std::string> texts;
  if (gives_parts) {
    texts.emplace_back("hands out GPU shares, and the pod does not say which isolation it needs");
  }
  if (crowd > 0) {
    texts.push_back("has " + std::to_string(crowd) + (crowd == 1 ? " pod" : " pods") +
                    std::string(" that it should be spread from"));
  }
  if (penalty > 0) texts.push_back(TextOfPenalty(penalty));
  return Join(texts, ", ");
}

bool MayPutBehind(const RequestShape& shape) {
  return shape.is_plain() || shape.spread != Spread::kNone || !shape.neighbours.empty();
}

Behind BehindOn(const Node& node, const RequestShape& shape) {
  return {shape.is_plain() && node.spec().gives_parts(), CrowdOn(node, shape),
          NeighbourPenalty(node, shape)};
}

}  // namespace berth
