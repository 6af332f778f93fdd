// SPDX-License-Identifier: Apache-2.0
#include "scoring/explain/claim_words.h"

#include <algorithm>

#include "base/text.h"
#include "cluster/node/mig_use.h"

namespace berth {
namespace {

std::string AskText(const DeviceWant& want) {
  if (want.capacity.empty()) return CountText(want.count, "GPU");
  std::string text = want.count == 1 ? "" : CountText(want.count, "time") + " ";
  std::string_view whose = "a GPU's ";
  for (const auto& [capacity, milli] : want.capacity) {
    text += (whose == "its " ? " and " : "") + TextOfPart(milli, capacity, whose);
    whose = "its ";
  }
  return text;
}

}  // namespace

std::string AskText(std::span<const DeviceClaim> claims) {
  return Join(claims, " and ", [](const DeviceClaim& claim) {
    return Join(claim.requests, " and ",
                [](const DeviceRequest& request) { return AskText(request.wants.front()); });
  });
}

std::vector<LinePart> LineOf(const ClaimsJudged& judged) {
  const std::string nodes = CountText(judged.nodes, "node");
  const std::string asks = "it asks for " + judged.asks + " by claim";
  if (judged.fitting > 0) {
    return {{"fits " + std::to_string(judged.fitting) + " of " + nodes + " now"}, {asks, 1}};
  }
  if (judged.too_long) {
    return {{asks + ", and to compare that with all nodes takes too long"}};
  }
  std::vector<LinePart> line = {{"fits none of " + nodes}};
  if (!judged.against.empty()) {
    const auto most =
        std::ranges::max_element(judged.against, {}, [](const auto& why) { return why.second; });
    line.push_back({CountText(most->second, "node") + " with such GPUs free " + most->first});
    line.push_back({asks, 1});
  } else if (judged.lack) {
    const ClaimRoom::Lack& lack = *judged.lack;
    const std::string left = TextOfPart(lack.left, lack.capacity);
    const std::string wait = "wait until claims end";
    line.push_back({lack.would_do ? "ask for " + left + " or less, or " + wait : wait});
    line.push_back({asks + ", and most is left of " + lack.device + " on " + judged.nearest, 1});
    if (!lack.would_do) line.push_back({left, 1, ": "});
  } else {
    line.push_back({asks + ", and no node has that free"});
  }
  return line;
}

std::vector<std::string> PartsHeldOn(const Node& node) {
  std::map<std::string, std::string> parts;  // by device
  if (node.claims() == nullptr) return {};
  for (const ClaimedGpu& held : *node.claims()) {
    const bool is_own = held.device.find('/') == std::string::npos;  // no other driver's
    if (is_own && (!held.shared || HeldByClaims(node.spec(), std::span(&held, 1)) != 0)) continue;
    const std::string begin = held.device + (held.shared ? ": parts held by" : ": held by");
    std::string& by = parts.try_emplace(held.device, begin).first->second;
    by += (by.ends_with(" by") ? " claim " : ", claim ") + WithParts(held.claim, held);
  }
  std::vector<std::string> texts;
  for (auto& [device, text] : parts) texts.push_back(std::move(text));
  return texts;
}

std::string ClaimedText(const Node& node, const PodRequest& pod) {
  std::vector<std::string> devices;
  if (node.claims() == nullptr) return "";
  for (const ClaimedGpu& held : *node.claims()) {
    const bool is_its = std::ranges::any_of(pod.claims, [&](const std::string& claim) {
      return held.claim == pod.id.namespace_name + "/" + claim;
    });
    if (is_its) devices.push_back(WithParts(held.device, held));
  }
  return Join(devices, ", ");
}

}  // namespace berth
