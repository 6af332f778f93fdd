// SPDX-License-Identifier: Apache-2.0
//
// NodeHold: the annotations by which node autoscalers leave a node alone, and which of them are
// Berth's. Berth sets those that nobody has set, and names them in an annotation of its own.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace berth::wire {

inline constexpr std::array<std::string_view, 2> kHoldKeys = {
    "cluster-autoscaler.kubernetes.io/scale-down-disabled", "karpenter.sh/do-not-disrupt"};
// "KEY,KEY" of those above.
inline constexpr std::string_view kHoldMark = "berth.dev/holds-node";

// Texts of a node's annotations, as the API server has them; "": it has none.
struct NodeHold {
  std::string mark = {};
  std::array<std::string, kHoldKeys.size()> texts = {};  // by kHoldKeys

  // Takes the annotation, if it is one of these.
  void Take(std::string_view key, std::string_view text);
  [[nodiscard]] bool empty() const { return *this == NodeHold(); }
  friend bool operator==(const NodeHold&, const NodeHold&) = default;
};

// The merge patch of the node by which Berth holds it / holds it no longer; "": nothing is to be
// done. A text that somebody has changed since is not Berth's any more, and stays.
std::string EncodeHold(const NodeHold& now, bool hold);

}  // namespace berth::wire
