// SPDX-License-Identifier: Apache-2.0
#include "scoring/filters/node_traits_match.h"

#include <algorithm>

namespace berth {

Reason NodeTraitsMatch::Check(const Node& node, const RequestShape& shape) const {
  const auto has = [&](const std::string& trait) { return HasTrait(node.spec().traits, trait); };
  if (!std::ranges::all_of(shape.nodes.required, has)) return Reason::kTraitMissing;
  return std::ranges::any_of(shape.nodes.forbidden, has) ? Reason::kTraitForbidden : Reason::kFits;
}

}  // namespace berth
