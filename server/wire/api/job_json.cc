// SPDX-License-Identifier: Apache-2.0
#include "server/wire/api/job_json.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "server/wire/json/json_text.h"
#include "server/wire/json/object_reader.h"
#include "server/wire/json/selector_json.h"

namespace berth::wire {

namespace {

using simdjson::ondemand::object;
using simdjson::ondemand::value;

// What decides whether the Job has a run beside what is kept of it.
struct Phase {
  bool suspended = false, ended = false;
};

void ReadSpec(object spec, JobDeadline& job, Phase& phase) {
  ForEachField(spec, [&](std::string_view key, value content) {
    if (IsField(key, "suspend")) phase.suspended = content.get_bool();
    if (!IsField(key, "activeDeadlineSeconds")) return;
    std::int64_t limit = 0;
    const bool is_number = content.get_int64().get(limit) == simdjson::SUCCESS;
    if (is_number && limit >= 1 && limit <= kMostRunSeconds) job.seconds = limit;
  });
}

bool IsEnd(object condition) {
  bool is_end = false, is_true = false;
  ForEachField(condition, [&](std::string_view key, value content) {
    if (IsField(key, "status")) is_true = std::string_view(content.get_string()) == "True";
    if (!IsField(key, "type")) return;
    const std::string_view type = content.get_string();
    is_end = type == "Complete" || type == "Failed";
  });
  return is_end && is_true;
}

void ReadStatus(object status, JobDeadline& job, Phase& phase) {
  ForEachField(status, [&](std::string_view key, value content) {
    if (IsField(key, "startTime")) job.started = ParseTime(content.get_string());
    if (!IsField(key, "conditions")) return;
    for (auto condition : content.get_array()) {
      phase.ended = IsEnd(condition.get_object()) || phase.ended;
    }
  });
}

}  // namespace

Result<JobDeadline> DecodeJobDeadline(const PaddedText& text) {
  JobDeadline job;
  Phase phase;
  BERTH_TRY(ObjectMeta meta, ReadNamed(text, "Job", [&](std::string_view key, value content) {
              if (IsField(key, "spec")) ReadSpec(content.get_object(), job, phase);
              if (IsField(key, "status")) ReadStatus(content.get_object(), job, phase);
            }));
  if (meta.uid.empty() || meta.uid.size() > kMostControllerBytes) {
    return Invalid("metadata.uid: want 1 to " + std::to_string(kMostControllerBytes) +
                   " bytes, got \"" + Shortened(meta.uid, kMostControllerBytes) + "\"");
  }
  BERTH_TRY_STATUS(CheckLength(meta.namespace_name, kMostNameBytes, "metadata.namespace"));
  job.over = phase.ended || (phase.suspended && !job.started);
  job.namespace_name = std::move(meta.namespace_name);
  job.uid = std::move(meta.uid);
  return job;
}

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
