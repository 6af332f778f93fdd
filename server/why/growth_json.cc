// SPDX-License-Identifier: Apache-2.0
#include "server/why/growth_json.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "scoring/explain/node_report.h"
#include "server/why/explain_parts.h"
#include "server/wire/json/strict_json.h"
#include "server/wire/node/template_node.h"

namespace berth::wire {
namespace {

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
  std::string text = CountText(told.asked.pods, "pod");
  text += waits ? (told.asked.pods == 1 ? " waits" : " wait") : " asked about";
  text += ", for " + GpuCountText(told.asked.gpu_milli);
  if (told.asked.pods == 0) return waits ? "no pod waits" : "no pod is asked about";
  if (told.now.pods > 0) {
    text += "; " + std::to_string(told.now.pods) + (told.now.pods == 1 ? " fits" : " fit") +
            " on the present nodes";
  }
  return text;
}

// "1 more node takes 3 pods (24 GPUs), 2 to 3 take 5 (40 GPUs)". node: "more node", or "node" of a
// pool that has none.
std::string TakenText(const std::vector<Taken>& taken, const std::string& node) {
  std::string text;
  for (std::size_t i = 0; i < taken.size();) {
    std::size_t end = i + 1;
    while (end < taken.size() && taken[end] == taken[i]) ++end;
    if (i == 0 && end == taken.size() && taken[i].pods == 0) {
      return CountText(static_cast<std::int64_t>(end), node) +
             (end == 1 ? " takes none of them" : " take none of them");
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

// "machine type a3-highgpu-8g (no node yet, 8 GPUs, H100): 1 node takes 3 pods (24 GPUs)".
std::string AtZeroText(const PoolGrowth& growth) {
  const NodePool& pool = growth.pool;
  return "machine type " + pool.name + " (no node yet, " + CountText(pool.gpus, "GPU") +
         (pool.model.empty() ? "" : ", " + pool.model) + "): " + TakenText(growth.taken, "node") +
         "\n";
}

std::string PoolText(const PoolGrowth& growth) {
  const NodePool& pool = growth.pool;
  if (pool.nodes == 0) return AtZeroText(growth);
  std::string text = "pool " + pool.name;
  if (!pool.instance_type.empty() && pool.instance_type != pool.name) {
    text += ", " + pool.instance_type;
  }
  text += " (" + CountText(pool.nodes, "node") + " of " + CountText(pool.gpus, "GPU");
  if (!pool.model.empty()) text += ", " + pool.model;
  text += "): " + TakenText(growth.taken, "more node") + "\n";
  if (!pool.not_autoscaled.empty()) text += "  " + pool.not_autoscaled + "\n";
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
  for (std::size_t i = 0; i < std::min(kTold, nowhere.size()); ++i) {
    text += (i == 0 ? "" : ", ") + report.pods[nowhere[i]].id.full_name();
  }
  if (nowhere.size() > kTold) text += ", ...";
  return text + "\n";
}

}  // namespace

std::string EncodeGrowth(const GrowthReport& report) {
  const Growth& told = report.told;
  Json json = {{"version", kGrowthVersion}, {"sentence", SentenceOf(report)},
               {"asked", told.asked.pods},  {"asked_gpus", GpusJson(told.asked.gpu_milli)},
               {"fitting", told.now.pods},  {"fitting_gpus", GpusJson(told.now.gpu_milli)},
               {"gated", report.gated},     {"beyond", report.beyond}};
  json["pools"] = Json::array();
  for (const PoolGrowth& growth : told.pools) json["pools"].push_back(PoolJson(growth));
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
    text += "; " + CountText(static_cast<std::int64_t>(report.gated), "more pod") +
            " with scheduling gates";
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
