// SPDX-License-Identifier: Apache-2.0
#include "server/telemetry/decision_recorder.h"

#include <array>
#include <string>
#include <string_view>

#include "base/text.h"
#include "cluster/node/mig_use.h"

namespace berth {
namespace {

// "0:1000,3:250": index and thousandths of every GPU granted; "1g.5gb at 4 of GPU 2" of MIG
// devices.
std::string GrantText(const Placement& placement) {
  std::string text;
  for (const DeviceGrant& grant : placement.grants) {
    if (!text.empty()) text += ',';
    text += std::to_string(grant.gpu) + ":" + std::to_string(grant.milli);
  }
  for (const MigGrant& grant : placement.mig) text += (text.empty() ? "" : ",") + NameOf(grant);
  return text;
}

}  // namespace

void DecisionRecorder::Record(const Decision& decision) {
  metrics_.CountRefusal(decision.first_reason);
  if (decision.link_quality) {
    metrics_.ObserveLinkQuality(decision.placement->grants.size(), *decision.link_quality);
  }
  if (decision.waited) metrics_.ObserveWait(*decision.placement, *decision.waited);
  const PodId& pod = *decision.pod;
  if (decision.error != nullptr) {
    log_.Write(LogLevel::kWarn, "bind_failed",
               {{"namespace", pod.namespace_name},
                {"pod", pod.name},
                {"pod_uid", pod.uid},
                {"decision", decision.id},
                {"code", ErrcName(decision.error->code)},
                {"error", decision.error->message}});
  } else if (decision.placement != nullptr) {
    log_.Write(LogLevel::kInfo, "pod_bound",
               {{"namespace", pod.namespace_name},
                {"pod", pod.name},
                {"pod_uid", pod.uid},
                {"decision", decision.id},
                {"node", decision.placement->node},
                {"grants", GrantText(*decision.placement)}});
  } else if (log_.Enabled(LogLevel::kDebug)) {
    log_.Write(LogLevel::kDebug, "decision",
               {{"verb", NameOf(decision.verb)},
                {"pod_uid", pod.uid},
                {"candidates", decision.candidates},
                {"fitting", decision.fitting},
                {"first_reason", CodeOf(decision.first_reason)},
                {"shortage", decision.shortage}});
  }
}

void DecisionRecorder::Record(const GangNews& news) {
  metrics_.Count(news);
  using enum GangNews::What;
  const bool is_problem = news.what == kNoRoom || news.what == kAborted;
  const char* const event = news.what == kPlanned  ? "gang_planned"
                            : news.what == kNoRoom ? "gang_without_room"
                            : news.what == kBegun  ? "gang_begun"
                                                   : "gang_aborted";
  log_.Write(is_problem ? LogLevel::kWarn : LogLevel::kInfo, event,
             {{"gang", news.gang.text()}, {"text", news.text}});
}

void DecisionRecorder::Record(const PodWaits& news) {
  log_.Write(LogLevel::kInfo, "pod_waits",
             {{"pod", news.pod.full_name()}, {"text", news.sentence}});
}

void DecisionRecorder::Record(const RoomNews& news) {
  using enum RoomNews::What;
  constexpr std::array<std::string_view, 7> kNames = {
      "room_advice", "room_begun",    "room_evicts",        "room_moved",
      "room_made",   "room_given_up", "idle_nodes_given_up"};
  const bool is_problem = news.what == kEvicted || news.what >= kGivenUp;
  log_.Write(is_problem ? LogLevel::kWarn : LogLevel::kInfo,
             kNames[static_cast<std::size_t>(news.what)],
             {{"pod", news.pod.name.empty() ? "" : news.pod.full_name()},
              {"moved", news.moved.name.empty() ? "" : news.moved.full_name()},
              {"text", news.text}});
}

void DecisionRecorder::Record(const PodsEvicted& news) {
  log_.Write(LogLevel::kWarn, "evicted_for_devices",
             {{"pod", news.pod.full_name()},
              {"node", news.node},
              {"victims", Join(news.victims, " ", &PodId::full_name)}});
}

}  // namespace berth
