// SPDX-License-Identifier: Apache-2.0
#include "server/why/plan_json.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/text.h"
#include "scoring/explain/node_report.h"
#include "server/why/api_rules.h"
#include "server/why/explain_json.h"
#include "server/wire/json/strict_json.h"
#include "server/wire/node/template_node.h"

namespace berth::wire {
namespace {

constexpr int kPlanVersion = 1;

std::int64_t IdleOf(const std::vector<ModelSummary>& models) {
  std::int64_t idle = 0;
  for (const ModelSummary& model : models) idle += model.idle;
  return idle;
}

// What of the pod Berth does not look at; it has a place if that allows it.
std::span<const std::string> NotJudgedOf(const PlanRequest& request, std::size_t pod) {
  if (request.notes[pod] == nullptr) return {};
  return request.notes[pod]->not_judged;
}

// How many pods have a place only then.
std::int64_t Conditional(const PlanRequest& request, const WhatIfAnswer& answer) {
  std::int64_t pods = 0;
  for (std::size_t i = 0; i < answer.pods.size(); ++i) {
    if (answer.pods[i].placement && !NotJudgedOf(request, i).empty()) ++pods;
  }
  return pods;
}

std::string PlanSentence(const PlanRequest& request, const WhatIfAnswer& answer) {
  const std::int64_t conditional = Conditional(request, answer);
  const std::string more = conditional == 0 ? ""
                                            : ", " + std::to_string(conditional) +
                                                  " more if what Berth does not judge allows it";
  return std::to_string(answer.fitting - conditional) + " of " +
         CountText(std::ssize(answer.pods), "pod") + " fit" + more +
         "; idle GPUs: " + std::to_string(IdleOf(answer.before)) + " before, " +
         std::to_string(IdleOf(answer.after)) + " after";
}

// "; not judged: volume claim data, host port 80" of those of the source that have a place.
std::string NotJudgedText(const PlanRequest& request, const PlanRequest::Source& source,
                          const WhatIfAnswer& answer) {
  std::vector<std::string> names;
  for (std::size_t i = source.first; i < source.first + source.count; ++i) {
    if (!answer.pods[i].placement) continue;
    for (const std::string& name : NotJudgedOf(request, i)) {
      const bool is_new = std::ranges::find(names, name) == names.end();
      if (is_new && names.size() < kMostNotJudged) names.push_back(name);
    }
  }
  return names.empty() ? "" : "; not judged: " + Join(names, ", ");
}

Json WhyJson(const WhyNot& why) {
  Json json = {{"text", why.text}, {"pods", why.pods}};
  json["reasons"] = why.told ? CountsJson(why.told->counts) : Json::array();
  json["nearest"] = Json::array();
  if (!why.told) return json;
  for (const NearNodeFacts& near : why.told->nearest) json["nearest"].push_back(NearJson(near));
  return json;
}

// "on n1 with GPU 0, GPU 1".
std::string PlaceText(const Placement& placement) {
  const std::string devices = ListDevices(DevicesOf(placement), placement.places);
  return "on " + placement.node + (devices.empty() ? "" : " with " + devices);
}

// "2 on n1, 1 on n2", in the order in which they come first.
std::string NodesText(const PlanRequest::Source& source, const WhatIfAnswer& answer) {
  constexpr std::size_t kTold = 8;
  std::vector<std::pair<std::string, int>> nodes;
  for (std::size_t i = source.first; i < source.first + source.count; ++i) {
    if (!answer.pods[i].placement) continue;
    const std::string& name = answer.pods[i].placement->node;
    const auto known = std::ranges::find(nodes, name, &std::pair<std::string, int>::first);
    if (known == nodes.end()) {
      nodes.emplace_back(name, 1);
    } else {
      ++known->second;
    }
  }
  std::string text = Join(FirstOf(nodes, kTold), ", ", [](const auto& at) {
    return std::to_string(at.second) + " on " + at.first;
  });
  if (nodes.size() > kTold) {
    text += " and " + CountText(nodes.size() - kTold, "more node");
  }
  return text;
}

std::string SourceText(const PlanRequest& request, const PlanRequest::Source& source,
                       const WhatIfAnswer& answer) {
  std::int64_t fit = 0;
  std::vector<std::pair<std::size_t, std::int64_t>> whys;  // which -> of how many pods
  for (std::size_t i = source.first; i < source.first + source.count; ++i) {
    const WhatIfPod& pod = answer.pods[i];
    if (pod.placement) {
      ++fit;
    } else if (!whys.empty() && whys.back().first == pod.why) {
      ++whys.back().second;
    } else {
      whys.emplace_back(pod.why, 1);
    }
  }
  std::string text = source.what + ": ";
  if (source.count == 1) {
    const WhatIfPod& pod = answer.pods[source.first];
    return text +
           (pod.placement ? "fits " + PlaceText(*pod.placement)
                          : "does not fit: " + answer.whys[pod.why].text) +
           NotJudgedText(request, source, answer) + "\n";
  }
  text += std::to_string(fit) + " of " + CountText(source.count, "pod") + " fit";
  if (fit > 0) text += ": " + NodesText(source, answer);
  text += NotJudgedText(request, source, answer) + "\n";
  for (const auto& [why, pods] : whys) {
    text += "  " + std::to_string(pods) + (pods == 1 ? " does not: " : " do not: ") +
            answer.whys[why].text + "\n";
  }
  return text;
}

constexpr int kGrowthVersion = 1;

// "8 GPUs", "0.5 GPUs" where there are shares.
std::string GpuCountText(std::int64_t milli) {
  return milli % 1000 == 0 ? CountText(milli / 1000, "GPU") : CpuText(milli) + " GPUs";
}

Json GpusJson(std::int64_t milli) {
  return milli % 1000 == 0 ? Json(milli / 1000) : Json(static_cast<double>(milli) / 1000);
}

std::string SentenceOf(const GrowthReport& report) {
  const Growth& told = report.told;
  const bool waits = !report.request.has_pods;
  // Nobody knows for how many GPUs these are.
  const std::int64_t refused = std::ranges::count_if(
      report.pods, [](const PodRequest& pod) { return !pod.refusal.empty(); });
  const std::int64_t asked = told.asked.pods - refused;
  std::string text = CountText(asked, "pod");
  text += waits ? (asked == 1 ? " waits" : " wait") : " asked about";
  text += ", for " + GpuCountText(told.asked.gpu_milli);
  if (told.asked.pods == 0) return waits ? "no pod waits" : "no pod is asked about";
  if (told.now.pods > 0) {
    text += "; " + std::to_string(told.now.pods) + (told.now.pods == 1 ? " fits" : " fit") +
            " on the present nodes";
  }
  if (refused > 0) text += "; " + CountText(refused, "more pod") + " must be changed";
  return text;
}

// "1 more node takes 3 pods (24 GPUs), 2 to 3 take 5 (40 GPUs)". node: "more node", or "node".
std::string TakenText(const std::vector<Taken>& taken, const std::string& node) {
  std::string text;
  for (std::size_t i = 0; i < taken.size();) {
    std::size_t end = i + 1;
    while (end < taken.size() && taken[end] == taken[i]) ++end;
    if (i == 0 && end == taken.size() && taken[i].pods == 0) {
      return CountText(end, node) + (end == 1 ? " takes none of them" : " take none of them");
    }
    if (i > 0) text += ", ";
    text += std::to_string(i + 1);
    if (end > i + 1) text += " to " + std::to_string(end);
    if (i == 0) text += " " + node + (end > 1 ? "s" : "");
    text += end > 1 ? " take " : " takes ";
    text += taken[i].pods == 0 ? "none" : CountText(taken[i].pods, "pod");
    if (taken[i].gpu_milli > 0) text += " (" + GpuCountText(taken[i].gpu_milli) + ")";
    i = end;
  }
  return text;
}

// "8 GPUs, H100", "8 replicas of 2 GPUs".
std::string GpusText(const NodePool& pool) {
  const std::string gpus = CountText(pool.gpus, "GPU"),
                    replicas = CountText(pool.replicas, "GPU replica");
  return (pool.replicas == 0 ? gpus
          : pool.gpus == 0   ? replicas
                             : replicas + " on " + gpus) +
         (pool.model.empty() ? "" : ", " + pool.model) + "): ";
}

// "pool a100 (2 nodes of 8 GPUs, A100): 1 more node takes 3 pods (24 GPUs)", "machine type
// a3-highgpu-8g (no node yet, 8 GPUs, H100): 1 node takes 3 pods (24 GPUs)".
std::string PoolText(const PoolGrowth& growth) {
  const NodePool& pool = growth.pool;
  const bool is_new = pool.nodes == 0;
  std::string text = (is_new ? "machine type " : "pool ") + pool.name;
  if (!is_new && !pool.instance_type.empty() && pool.instance_type != pool.name) {
    text += ", " + pool.instance_type;
  }
  text += " (" + (is_new ? "no node yet, " : CountText(pool.nodes, "node") + " of ") +
          GpusText(pool) + TakenText(growth.taken, is_new ? "node" : "more node") + "\n";
  if (!is_new && !pool.not_autoscaled.empty()) text += "  " + pool.not_autoscaled + "\n";
  return text;
}

Json PoolJson(const PoolGrowth& growth) {
  const NodePool& pool = growth.pool;
  Json json = {{"pool", pool.name},
               {"label", pool.label},
               {"instance_type", pool.instance_type},
               {"like", pool.nodes == 0 ? "" : pool.like},
               {"model", pool.model},
               {"nodes", pool.nodes},
               {"gpus", pool.gpus}};
  if (pool.replicas > 0) json["replicas"] = pool.replicas;
  if (pool.nodes == 0) json["assumes"] = kTemplateAssumes;
  if (!pool.not_autoscaled.empty()) json["not_autoscaled"] = pool.not_autoscaled;
  json["takes"] = Json::array();
  for (std::size_t i = 0; i < growth.taken.size(); ++i) {
    json["takes"].push_back({{"nodes", i + 1},
                             {"pods", growth.taken[i].pods},
                             {"gpus", GpusJson(growth.taken[i].gpu_milli)}});
  }
  return json;
}

std::string NowhereText(const GrowthReport& report) {
  constexpr std::size_t kTold = 8;
  const std::vector<std::size_t>& nowhere = report.told.nowhere;
  if (nowhere.empty() || report.told.pools.empty()) return "";
  std::string text =
      "No pool takes " + CountText(std::ssize(nowhere), "pod") + ", even if no other waited: ";
  text += Join(FirstOf(nowhere, kTold), ", ", [&](std::size_t pod) {
    const auto why = report.told.nowhere_whys.find(pod);
    const std::string& refusal = report.pods[pod].refusal;
    const bool is_said = why != report.told.nowhere_whys.end() && !why->second.empty();
    return report.pods[pod].id.full_name() + (!refusal.empty() ? " (change it: " + refusal + ")"
                                              : is_said        ? " (" + why->second + ")"
                                                               : "");
  });
  if (nowhere.size() > kTold) text += ", ...";
  return text + "\n";
}

}  // namespace

Json EditedNodesJson(const EditedNodes& nodes) {
  return {{"added", nodes.added},
          {"removed", nodes.removed},
          {"pods_lost", nodes.pods_lost},
          {"gpu_pods_lost", nodes.gpu_pods_lost}};
}

std::string TextOf(const EditedNodes& nodes) {
  constexpr std::size_t kTold = 5;
  std::string text;
  if (!nodes.added.empty()) {
    text += CountText(std::ssize(nodes.added), "node") + " added: " + nodes.added.front();
    if (nodes.added.size() > 1) text += " to " + nodes.added.back();
    text += "\n";
  }
  if (nodes.removed.empty()) return text;
  text += CountText(std::ssize(nodes.removed), "node") + " removed: ";
  if (nodes.pods_lost == 0) return text + "no pod ran there\n";
  text += CountText(nodes.pods_lost, "pod") + " lost with it, " +
          std::to_string(nodes.gpu_pods_lost.size()) + " with GPUs";
  if (!nodes.gpu_pods_lost.empty()) {
    text += " (" + Join(FirstOf(nodes.gpu_pods_lost, kTold), ", ") +
            (nodes.gpu_pods_lost.size() > kTold ? ", ...)" : ")");
  }
  return text + "; this plan does not place them again\n";
}

std::string EncodePlan(const PlanRequest& request, const WhatIfAnswer& answer) {
  Json json = {{"version", kPlanVersion},
               {"sentence", PlanSentence(request, answer)},
               {"asked", answer.pods.size()},
               {"fitting", answer.fitting},
               {"conditional", Conditional(request, answer)},
               {"plans_only", answer.plans_only}};
  json["pods"] = Json::array();
  for (const PlanRequest::Source& source : request.sources) {
    for (std::size_t i = source.first; i < source.first + source.count; ++i) {
      const WhatIfPod& planned = answer.pods[i];
      Json pod = {{"pod", request.pods[i].id.full_name()},
                  {"of", source.what},
                  {"fits", planned.placement.has_value()}};
      if (planned.placement) {
        pod["node"] = planned.placement->node;
        pod["devices"] = DevicesJson(*planned.placement);
      } else {
        pod["why"] = planned.why;
      }
      const auto not_judged = NotJudgedOf(request, i);
      if (!not_judged.empty()) {
        pod["not_judged"] = std::vector<std::string>(not_judged.begin(), not_judged.end());
      }
      json["pods"].push_back(std::move(pod));
    }
  }
  json["whys"] = ListOf(answer.whys, WhyJson);
  json["preferences"] = answer.wishes;
  json["nodes"] = EditedNodesJson(answer.nodes);
  json["before"] = ModelsJson(answer.before);
  json["after"] = ModelsJson(answer.after);
  json["left_out"] = request.left_out;
  return JsonText(json) + "\n";
}

std::string TextOf(const PlanRequest& request, const WhatIfAnswer& answer) {
  std::string text;
  for (const PlanRequest::Source& source : request.sources) {
    text += SourceText(request, source, answer);
  }
  for (const std::string& wish : answer.wishes) text += wish + "\n";
  text += TextOf(answer.nodes);
  for (const std::string& what : request.left_out) text += "Left out: " + what + "\n";
  if (answer.plans_only > 0) {
    text +=
        "Advice: install berth-node to make the choice of GPUs certain: the device plugin makes "
        "it for " +
        std::to_string(answer.plans_only) + " of these pods\n";
  }
  return text + PlanSentence(request, answer) + "\n";
}

std::string EncodeGrowth(const GrowthReport& report) {
  const Growth& told = report.told;
  Json json = {{"version", kGrowthVersion}, {"sentence", SentenceOf(report)},
               {"asked", told.asked.pods},  {"asked_gpus", GpusJson(told.asked.gpu_milli)},
               {"fitting", told.now.pods},  {"fitting_gpus", GpusJson(told.now.gpu_milli)},
               {"gated", report.gated},     {"beyond", report.beyond}};
  json["pools"] = ListOf(told.pools, PoolJson);
  json["nowhere"] = Json::array();
  for (const std::size_t pod : told.nowhere) {
    json["nowhere"].push_back(report.pods[pod].id.full_name());
  }
  json["nodes"] = EditedNodesJson(told.nodes);
  json["left_out"] = report.request.left_out;
  return JsonText(json) + "\n";
}

std::string TextOf(const GrowthReport& report) {
  std::string text = TextOf(report.told.nodes);
  for (const std::string& what : report.request.left_out) text += "Left out: " + what + "\n";
  text += SentenceOf(report);
  if (report.gated > 0) {
    text += "; " + CountText(report.gated, "more pod") + " with scheduling gates";
  }
  if (report.beyond > 0)
    text += "; the last " + std::to_string(report.beyond) + " in the queue are not tried";
  text += "\n";
  if (report.told.asked.pods == 0) return text;
  for (const PoolGrowth& growth : report.told.pools) text += PoolText(growth);
  if (!report.request.at_zero.empty()) {
    text += "  assumed of a machine type: " + std::string(kTemplateAssumes) + "\n";
  }
  if (report.told.pools.empty()) text += "no node has GPUs, so no pool can grow\n";
  return text + NowhereText(report);
}

}  // namespace berth::wire
