// SPDX-License-Identifier: Apache-2.0
#include "server/wire/node/node_hold.h"

#include <cstddef>

#include "server/wire/json/strict_json.h"

namespace berth::wire {
namespace {

constexpr std::string_view kSet = "true";
constexpr std::size_t kMostText = 256;  // others may write what they like

}  // namespace

void NodeHold::Take(std::string_view key, std::string_view text) {
  text = text.substr(0, kMostText);
  if (key == kHoldMark) mark = text;
  for (std::size_t i = 0; i < kHoldKeys.size(); ++i) {
    if (key == kHoldKeys[i]) texts[i] = text.empty() ? " " : text;
  }
}

std::string EncodeHold(const NodeHold& now, bool hold) {
  Json annotations = Json::object();
  std::string mark;
  for (std::size_t i = 0; i < kHoldKeys.size(); ++i) {
    const std::string key(kHoldKeys[i]);
    const bool is_ours = now.mark.find(key) != std::string::npos && now.texts[i] == kSet;
    if (hold && (is_ours || now.texts[i].empty())) {
      mark += (mark.empty() ? "" : ",") + key;
      annotations[key] = kSet;
    } else if (!hold && is_ours) {
      annotations[key] = nullptr;
    }
  }
  if (hold ? mark.empty() || mark == now.mark : now.mark.empty()) return "";
  annotations[std::string(kHoldMark)] = hold ? Json(mark) : Json(nullptr);
  return JsonText({{"metadata", {{"annotations", std::move(annotations)}}}});
}

}  // namespace berth::wire
