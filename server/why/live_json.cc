// SPDX-License-Identifier: Apache-2.0
#include "server/why/live_json.h"

#include <chrono>
#include <functional>
#include <string_view>
#include <unordered_map>

#include "cluster/node/mig_use.h"
#include "scoring/explain/gpu_use.h"
#include "scoring/explain/node_report.h"
#include "server/why/explain_json.h"
#include "server/wire/json/json_text.h"
#include "server/wire/json/strict_json.h"

namespace berth::wire {
namespace {

constexpr int kLiveVersion = 1;

std::int64_t SecondsOf(WallTime time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

Json WaitingRowJson(const WaitingRow& row) {
  const PodRequest& pod = *row.pod.pod;
  Json json = {{"pod", pod.id.full_name()}, {"asks", AskText(pod.shape)}};
  if (const int gpus = pod.shape.gpu_count(); gpus > 0) {
    json["gpus"] = pod.shape.is_share() ? gpus * pod.shape.milli_per_gpu() / 1000.0 : gpus;
  }
  if (!pod.shape.models.empty()) json["models"] = pod.shape.models;
  if (pod.priority != 0) json["priority"] = pod.priority;
  if (!pod.gang.id.empty()) json["gang"] = pod.gang.id.full_name();
  if (!pod.classes.empty()) json["class"] = pod.classes.front();
  if (row.pod.gated()) json["gated"] = true;
  if (row.pod.created) json["since"] = SecondsOf(*row.pod.created);
  if (!row.why.text.empty()) json["why"] = row.why.text;
  if (!row.why.fits.empty()) json["fits"] = row.why.fits;
  return json;
}

Json GangRowJson(const GangView& gang, WallTime now) {
  const auto since = now - std::chrono::duration_cast<WallTime::duration>(gang.age);
  Json json = {{"gang", gang.id.full_name()}, {"state", gang.state},     {"minimum", gang.minimum},
               {"placed", gang.placed},       {"waiting", gang.waiting}, {"planned", gang.planned},
               {"since", SecondsOf(since)}};
  if (gang.total) json["total"] = *gang.total;
  if (!gang.why.empty()) json["why"] = gang.why;
  return json;
}

Json BoundRowJson(const BoundRow& row) {
  Json json = {{"pod", row.pod}, {"node", row.node}, {"devices", row.devices}, {"since", row.at}};
  if (row.candidates > 0) {
    json["candidates"] = row.candidates;
    json["fitting"] = row.fitting;
  }
  return json;
}

Json RoomJson(const RoomProgress& room) {
  const auto step = [](RoomProgress::Step one) {
    return one == RoomProgress::Step::kMoved  ? "moved"
           : one == RoomProgress::Step::kEnds ? "ends"
                                              : "next";
  };
  Json json = {{"for", room.name}, {"gang", room.is_gang}, {"since", SecondsOf(room.begun)}};
  json["moves"] = ListOf(room.moves, [&step](const RoomProgress::Move& move) -> Json {
    return {{"pod", move.pod.full_name()},
            {"from", move.from},
            {"to", move.to},
            {"step", step(move.step)}};
  });
  if (!room.ended.empty()) {
    json["done"] = room.is_done;
    json["ended"] = room.ended;
  }
  return json;
}

// Numbers texts in the order in which they come.
class Numbers {
 public:
  std::size_t Of(std::string_view text) {
    const auto [at, is_new] = numbers_.try_emplace(std::string(text), texts_.size());
    if (is_new) texts_.push_back(at->first);
    return at->second;
  }
  [[nodiscard]] const std::vector<std::string>& texts() const { return texts_; }

 private:
  std::unordered_map<std::string, std::size_t> numbers_;
  std::vector<std::string> texts_;
};

// The levels that tell nodes apart: where at least one domain is named, and not each node is its
// own.
std::vector<std::size_t> TellingLevels(const DomainTree& tree) {
  std::vector<std::size_t> telling;
  for (std::size_t level = 0; level < tree.levels(); ++level) {
    const std::size_t named = tree.CountNamed(level);
    if (named > 0 && (named == 1 || named * 2 <= tree.nodes())) telling.push_back(level);
  }
  return telling;
}

std::string_view ValueAt(const NodeSpec& spec, const TopologyLevel& level) {
  for (const std::string& key : level.labels) {
    const std::string* const value = FindLabel(spec.labels, key);
    if (value != nullptr && !value->empty()) return *value;
  }
  return {};
}

// "zone a / leaf r3"; "" where it is in no domain.
std::string PlaceOf(const NodeSpec& spec, const TopologyLevels& levels,
                    const std::vector<std::size_t>& telling) {
  std::string place;
  for (const std::size_t level : telling) {
    const std::string_view value = ValueAt(spec, levels[level]);
    if (value.empty()) continue;
    if (!place.empty()) place += " / ";
    place += levels[level].name + " " + std::string(value);
  }
  return place;
}

// The numbers of the nodes' places, those of one domain found once.
class Places {
 public:
  Places(const TopologyLevels& levels, const DomainTree* tree) : levels_(levels), tree_(tree) {
    if (tree != nullptr) telling_ = TellingLevels(*tree);
  }
  std::size_t Of(NodeIndex node, const NodeSpec& spec) {
    const TopologyDomain domain =
        telling_.empty() ? DomainTree::kCluster : tree_->DomainOf(node, telling_.back());
    const auto [at, is_new] = known_.try_emplace(domain, 0);
    if (is_new) at->second = names_.Of(PlaceOf(spec, levels_, telling_));
    return at->second;
  }
  [[nodiscard]] const std::vector<std::string>& names() const { return names_.texts(); }

 private:
  const TopologyLevels& levels_;
  const DomainTree* const tree_;
  std::vector<std::size_t> telling_;
  std::unordered_map<TopologyDomain, std::size_t> known_;
  Numbers names_;
};

char FlagOf(const NodeSpec& spec) {
  if (!spec.ready) return 'n';
  if (spec.refuses_gpu_pods) return 'r';
  if (!spec.gpu_condition.empty()) return 'd';
  if (!TakesPods(spec)) return 'c';
  if (spec.places.foreign || (spec.mig.known() && spec.mig->foreign)) return 'f';
  return spec.gpu_contradiction.empty() ? '.' : 'x';
}

template <class Item>
void AppendList(std::string& out, std::string_view key, const std::vector<Item>& items) {
  out += ",\"";
  out += key;
  out += "\":[";
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += ',';
    if constexpr (std::is_integral_v<Item>) {
      AppendNumber(out, items[i]);
    } else {
      AppendString(out, items[i]);
    }
  }
  out += ']';
}

void AppendText(std::string& out, std::string_view key, std::string_view text) {
  out += ",\"";
  out += key;
  out += "\":";
  AppendString(out, text);
}

// Places on shared GPUs, by the node's position: [[3, 5, 16, 4]] is 5 of 16 taken, on 4 GPUs.
void AppendShared(std::string& out, const std::vector<const Node*>& nodes) {
  out += ",\"shared\":[";
  bool is_first = true;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const GpuPlaces& places = nodes[i]->spec().places;
    if (places.count == 0) continue;
    out += is_first ? "[" : ",[";
    is_first = false;
    AppendNumber(out, i);
    for (const int number : {nodes[i]->places_taken(), places.count, places.gpus}) {
      out += ',';
      AppendNumber(out, number);
    }
    out += ']';
  }
  out += ']';
}

// The nodes that are shown, by name.
std::vector<const Node*> GpuNodes(const Snapshot& snapshot) {
  std::vector<const Node*> nodes;
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    if (snapshot.node(i).spec().has_gpus()) nodes.push_back(&snapshot.node(i));
  }
  return nodes;
}

void AppendNodes(std::string& out, const Snapshot& snapshot) {
  const std::vector<const Node*> nodes = GpuNodes(snapshot);
  std::string flags, cells;
  for (const Node* const node : nodes) {
    flags += FlagOf(node->spec());
    if (node != nodes.front()) cells += ' ';
    cells += GpuCells(*node);
  }
  AppendText(out, "flags", flags);
  AppendText(out, "cells", cells);
  AppendShared(out, nodes);
  out += ",\"without_gpus\":";
  AppendNumber(out, snapshot.size() - nodes.size());
}

// "0-3,6".
std::string Ranges(const std::vector<int>& sorted) {
  std::string text;
  for (std::size_t i = 0; i < sorted.size();) {
    std::size_t last = i;
    while (last + 1 < sorted.size() && sorted[last + 1] == sorted[last] + 1) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(sorted[i]);
    if (last > i) text += "-" + std::to_string(sorted[last]);
    i = last + 1;
  }
  return text;
}

// [{"name": "ml", "gpus": 12.5, "mig_devices": 0, "pods": 9, "nodes": 3}].
Json OwnersJson(std::vector<OwnerUse> uses) {
  if (uses.size() > kMostOwnerRows) uses.resize(kMostOwnerRows);
  return ListOf(uses, [](const OwnerUse& use) {
    Json row = {{"name", use.name}};
    row.update(UseJson(use.use));
    row["nodes"] = use.nodes;
    return row;
  });
}

}  // namespace

std::string DevicesText(const Placement& placement) {
  std::string text;
  std::vector<int> whole;
  for (const DeviceGrant& grant : placement.grants) {
    if (grant.milli == kMilliPerGpu && grant.gpu >= 0) {
      whole.push_back(grant.gpu);
    } else {
      text += (text.empty() ? "" : ", ") + TextOf(grant);
    }
  }
  for (const MigGrant& grant : placement.mig) text += (text.empty() ? "" : ", ") + NameOf(grant);
  if (placement.places > 0) {
    text += (text.empty() ? "" : ", ") + CountText(placement.places, "GPU replica");
  }
  if (whole.empty()) return text;
  return (whole.size() == 1 ? "GPU " : "GPUs ") + Ranges(whole) + (text.empty() ? "" : ", ") + text;
}

std::string EncodeNews(const LiveNews& news) {
  Json json = {{"version", kLiveVersion}, {"berth", news.berth}};
  if (!news.not_ready.empty()) json["not_ready"] = news.not_ready;
  if (!news.title.empty()) json["title"] = news.title;
  if (!news.cluster.empty()) json["cluster"] = news.cluster;
  json["waiting_in_all"] = news.waiting_in_all;
  if (news.explains_more) json["explains_more"] = true;
  json["waiting"] = ListOf(news.waiting, WaitingRowJson);
  json["gangs"] =
      ListOf(news.gangs, [&news](const GangView& gang) { return GangRowJson(gang, news.now); });
  json["bound"] = ListOf(news.bound, BoundRowJson);
  json["recuts"] = ListOf(news.recuts, [](const NodeAdvice& at) -> Json {
    return {{"node", at.node}, {"config", at.advice.config}, {"fits", at.advice.fits}};
  });
  if (news.room != nullptr) json["room"] = RoomJson(*news.room);
  return JsonText(json);
}

NodeSet EncodeNodeSet(const Snapshot& snapshot, const TopologyLevels& levels,
                      const DomainTree* tree) {
  Numbers models;
  Places places(levels, tree);
  std::vector<std::string_view> names;
  std::vector<std::size_t> model, place;
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    const NodeSpec& spec = snapshot.node(i).spec();
    if (!spec.has_gpus()) continue;
    names.push_back(spec.name);
    model.push_back(models.Of(spec.gpu_model));
    place.push_back(places.Of(i, spec));
  }
  NodeSet set;
  AppendList(set.text, "names", names);
  AppendList(set.text, "model", model);
  AppendList(set.text, "place", place);
  AppendList(set.text, "model_names", models.texts());
  AppendList(set.text, "place_names", places.names());
  set.tag = std::to_string(std::hash<std::string>()(set.text));
  return set;
}

std::string EncodeLive(const std::string& news, const Snapshot& snapshot, const NodeSet& set,
                       bool whole) {
  std::string out = news;
  out.pop_back();
  out += ",\"top\":" + JsonText(ModelsJson(SummarizeModels(snapshot)));
  out += ",\"namespaces\":" + JsonText(OwnersJson(UseByOwner(snapshot, Owner::kNamespace)));
  out += ",\"classes\":" + JsonText(OwnersJson(UseByOwner(snapshot, Owner::kWorkloadClass)));
  AppendText(out, "set", set.tag);
  if (whole) out += set.text;
  AppendNodes(out, snapshot);
  out += '}';
  return out;
}

}  // namespace berth::wire
