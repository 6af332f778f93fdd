// SPDX-License-Identifier: Apache-2.0
#include "server/why/plan_json.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "server/why/api_rules.h"
#include "server/why/explain_parts.h"
#include "server/wire/json/strict_json.h"

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
  std::string text;
  for (std::size_t i = 0; i < std::min(kTold, nodes.size()); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(nodes[i].second) + " on " + nodes[i].first;
  }
  if (nodes.size() > kTold) {
    text += " and " + CountText(static_cast<std::int64_t>(nodes.size() - kTold), "more node");
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
  text += std::to_string(fit) + " of " + CountText(static_cast<std::int64_t>(source.count), "pod") +
          " fit";
  if (fit > 0) text += ": " + NodesText(source, answer);
  text += NotJudgedText(request, source, answer) + "\n";
  for (const auto& [why, pods] : whys) {
    text += "  " + std::to_string(pods) + (pods == 1 ? " does not: " : " do not: ") +
            answer.whys[why].text + "\n";
  }
  return text;
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
  for (std::size_t i = 0; i < std::min(kTold, nodes.gpu_pods_lost.size()); ++i) {
    text += (i == 0 ? " (" : ", ") + nodes.gpu_pods_lost[i];
  }
  if (nodes.gpu_pods_lost.size() > kTold) text += ", ...";
  if (!nodes.gpu_pods_lost.empty()) text += ")";
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
  json["whys"] = Json::array();
  for (const WhyNot& why : answer.whys) json["whys"].push_back(WhyJson(why));
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

}  // namespace berth::wire
