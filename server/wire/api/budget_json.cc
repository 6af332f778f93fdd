// SPDX-License-Identifier: Apache-2.0
#include "server/wire/api/budget_json.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "server/wire/json/object_reader.h"
#include "server/wire/json/selector_json.h"

namespace berth::wire {
namespace {

using simdjson::ondemand::object;
using simdjson::ondemand::value;

constexpr std::int64_t kNone = 0, kMost = 1 << 30;

Status ReadSpec(object spec, PodDisruptionBudget& budget) {
  Status status;
  ForEachField(spec, [&](std::string_view key, value content) {
    if (!IsField(key, "selector")) return;
    auto read = ReadLabelSelector(content.get_object());
    if (read) {
      budget.selector = *std::move(read);
    } else {
      status = tl::unexpected(std::move(read).error().Within("spec.selector"));
    }
  });
  return status;
}

void ReadStatus(object status, PodDisruptionBudget& budget) {
  ForEachField(status, [&budget](std::string_view key, value content) {
    if (!IsField(key, "disruptionsAllowed")) return;
    budget.disruptions_allowed =
        static_cast<int>(std::clamp(std::int64_t{content.get_int64()}, kNone, kMost));
  });
}

}  // namespace

Result<PodDisruptionBudget> DecodeBudget(const PaddedText& text) {
  PodDisruptionBudget budget;
  Status spec;
  BERTH_TRY(ObjectMeta meta,
            ReadNamed(text, "PodDisruptionBudget", [&](std::string_view key, value content) {
              if (IsField(key, "spec")) spec = ReadSpec(content.get_object(), budget);
              if (IsField(key, "status")) ReadStatus(content.get_object(), budget);
            }));
  BERTH_TRY_STATUS(spec);
  budget.namespace_name = std::move(meta.namespace_name);
  budget.name = std::move(meta.name);
  return budget;
}

}  // namespace berth::wire
