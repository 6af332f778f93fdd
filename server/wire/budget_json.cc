// SPDX-License-Identifier: Apache-2.0
#include "server/wire/budget_json.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "server/wire/object_reader.h"
#include "server/wire/selector_json.h"

namespace berth::wire {
namespace {

using simdjson::ondemand::object;
using simdjson::ondemand::value;

constexpr std::int64_t kNone = 0, kMost = 1 << 30;

Status ReadBudget(object fields, PodDisruptionBudget& budget) {
  std::string kind = "PodDisruptionBudget";
  Status selector;
  ForEachField(fields, [&](std::string_view key, value content) {
    if (IsField(key, "kind")) kind = std::string_view(content.get_string());
    const bool metadata = IsField(key, "metadata"), spec = IsField(key, "spec");
    if (!metadata && !spec && !IsField(key, "status")) return;
    ForEachField(content.get_object(), [&](std::string_view name, value part) {
      if (metadata && IsField(name, "name")) budget.name = std::string_view(part.get_string());
      if (metadata && IsField(name, "namespace")) {
        budget.namespace_name = std::string_view(part.get_string());
      }
      if (spec && IsField(name, "selector")) {
        auto read = ReadLabelSelector(part.get_object());
        if (read) {
          budget.selector = *std::move(read);
        } else {
          selector = tl::unexpected(std::move(read).error().Within("spec.selector"));
        }
      }
      if (!metadata && !spec && IsField(name, "disruptionsAllowed")) {
        budget.disruptions_allowed =
            static_cast<int>(std::clamp(std::int64_t{part.get_int64()}, kNone, kMost));
      }
    });
  });
  if (kind != "PodDisruptionBudget") {
    return Invalid("kind: want PodDisruptionBudget, got \"" + kind + "\"");
  }
  if (budget.name.empty()) return Invalid("metadata.name: want a name, got \"\"");
  return selector;
}

}  // namespace

Result<PodDisruptionBudget> DecodeBudget(const PaddedText& text) {
  PodDisruptionBudget budget;
  BERTH_TRY_STATUS(ReadObject(text, [&](object fields) { return ReadBudget(fields, budget); }));
  return budget;
}

}  // namespace berth::wire
