// SPDX-License-Identifier: Apache-2.0
#include "server/why/explain_json.h"

#include <chrono>

#include "server/wire/node/mig_json.h"
#include "server/wire/pod/given_json.h"

namespace berth::wire {
namespace {

constexpr int kVersion = 1;

Json SecondsJson(const std::optional<Duration>& age) {
  if (!age) return nullptr;
  return std::chrono::duration_cast<std::chrono::seconds>(*age).count();
}

Json AsksJson(const RequestShape& shape, bool in_units) {
  Json json = {{"text", AskText(shape, in_units)},
               {"cpu_milli", shape.cpu_milli},
               {"memory_bytes", shape.memory_bytes},
               {"ephemeral_bytes", shape.ephemeral_bytes}};
  if (const auto* const whole = std::get_if<WholeGpus>(&shape.gpus)) {
    json["gpus"] = whole->count;
  } else if (const auto* const share = std::get_if<GpuShare>(&shape.gpus)) {
    json["milli"] = share->milli;
    json["memory_mib"] = share->memory_mib;
    if (share->memory_milli > 0) json["memory_milli"] = share->memory_milli;
    if (share->count > 1) json["shares"] = share->count;
  } else if (const MigSlices* const mig = shape.mig()) {
    json["mig"] = MigWantsJson(*mig);
  }
  if (!shape.models.empty()) json["models"] = shape.models;
  return json;
}

Json GrantJson(const DeviceGrant& grant) {
  Json json = {{"index", grant.gpu}, {"milli", grant.milli}, {"memory_mib", grant.memory_mib}};
  if (!grant.uuid.empty()) json["uuid"] = grant.uuid;
  if (grant.gpu < 0) json["index"] = nullptr;
  return json;
}

Json GrantsJson(const std::vector<DeviceGrant>& grants) { return ListOf(grants, GrantJson); }

void AddPlanned(const PodDevices& planned, Json& json) {
  if (!planned.grants.empty()) json["planned_gpus"] = GrantsJson(planned.grants);
  for (const MigGrant& grant : planned.mig) json["planned_mig"].push_back(MigGrantJson(grant));
  if (!planned.places_on.empty()) json["planned_places_on"] = planned.places_on;
}

Json TenantJson(const NodeTenant& tenant) {
  const PodRecord& record = *tenant.record;
  Json json = {{"pod", tenant.name()},
               {"priority", record.pod.priority},
               {"state", StateOf(record.state)},
               {"gpus", GrantsJson(tenant.grants)}};
  for (const MigGrant& grant : record.placement.mig) json["mig"].push_back(NameOf(grant));
  if (tenant.places() > 0) json["places"] = tenant.places();
  if (tenant.gpus_unknown) json["gpus_unknown"] = true;
  if (!record.placement.places_on.empty()) json["places_on"] = record.placement.places_on;
  if (tenant.planned() != nullptr) AddPlanned(*tenant.planned(), json);
  return json;
}

Json FactsJson(const NodeReport& facts) {
  const NodeSpec& spec = facts.spec();
  const Node& node = facts.node;
  Json json = {{"node", facts.name},
               {"model", spec.gpu_model},
               {"ready", spec.ready},
               {"refuses_gpu_pods", spec.refuses_gpu_pods},
               {"refused_asks", facts.refused_asks},
               {"carries_out", spec.carries_out},
               {"by_dra", !spec.by_claims.empty()},
               {"driver", facts.driver},
               {"cuda", facts.cuda},
               {"topology_manager_policy", NameOf(spec.topology_manager.policy)},
               {"topology_manager_scope", spec.topology_manager.by_pod ? "pod" : "container"},
               {"gpu_condition", spec.gpu_condition},
               {"named_gpus_condition", spec.named_gpus_condition},
               {"gpu_contradiction", spec.gpu_contradiction},
               {"passed_over", spec.passed_over},
               {"agent_lacks", spec.agent_lacks},
               {"pods_on_other_gpus", facts.pods_on_other_gpus},
               {"traits", spec.traits},
               {"cpu_milli", spec.cpu_milli},
               {"free_cpu_milli", node.free_cpu_milli()},
               {"memory_bytes", spec.memory_bytes},
               {"free_memory_bytes", node.free_memory_bytes()},
               {"taints", facts.taints},
               {"idle_gpus", facts.idle_gpus}};
  if (spec.ephemeral_bytes) {
    json["ephemeral_bytes"] = *spec.ephemeral_bytes;
    json["free_ephemeral_bytes"] = node.free_ephemeral_bytes();
  }
  if (spec.gpu_price > 0) json["gpu_price"] = spec.gpu_price;
  json["gpus"] = Json::array();
  for (std::size_t i = 0; i < spec.gpus.size(); ++i) {
    json["gpus"].push_back({{"index", i},
                            {"uuid", spec.gpus[i].uuid},
                            {"free_milli", node.gpus()[i].milli},
                            {"free_memory_mib", node.gpus()[i].memory_mib},
                            {"memory_mib", spec.gpus[i].memory_mib},
                            {"open", node.IsOpen(static_cast<int>(i))},
                            {"held_by", facts.gpus[i].held_by}});
    const bool has_own = !spec.gpu_models.empty() && !spec.gpu_models[i].empty();
    if (has_own) json["gpus"].back()["model"] = spec.gpu_models[i];
  }
  const GpuPlaces& places = spec.places;
  if (places.count > 0) json["places"] = {{"count", places.count}, {"free", facts.free_places}};
  const std::vector<int> taken_on(node.places_on().begin(), node.places_on().end());
  if (!taken_on.empty()) json["places"]["taken_on"] = taken_on;
  if (!places.unwell.empty()) json["places"]["unhealthy"] = places.unwell;
  if (facts.mig_gpus > 0) {
    json["mig"] = {{"gpus", facts.mig_gpus}, {"cut_at_will", spec.mig->dynamic}};
    Json& free = json["mig"]["free"] = Json::object();
    for (const MigFree& profile : facts.mig) free[profile.profile] = profile.free;
  }
  json["pods"] = ListOf(facts.tenants, TenantJson);
  return json;
}

Json ModelJson(const ModelSummary& model) {
  Json fit = Json::object();
  for (std::size_t i = 0; i < model.fit.size(); ++i) {
    fit[std::to_string(ModelSummary::kSizes[i])] = model.fit[i];
  }
  Json drivers = ListOf(model.drivers, [](const auto& at) -> Json {
    return {{"driver", TextOf(at.first)}, {"nodes", at.second}};
  });
  return {{"model", model.model},
          {"nodes", model.nodes},
          {"gpus", model.gpus},
          {"out_of_order", model.out_of_order},
          {"closed", model.closed},
          {"allocated_milli", model.allocated_milli},
          {"idle", model.idle},
          {"largest_hole", model.largest_hole},
          {"hole_node", model.hole_node},
          {"pods_that_fit", std::move(fit)},
          {"places", model.places},
          {"free_places", model.free_places},
          {"shared_gpus", model.shared_gpus},
          {"mig_gpus", model.mig_gpus},
          {"drivers", std::move(drivers)}};
}

Json BestJson(const ScoredNode& scored) {
  Json scores = ListOf(scored.parts, [](const ScorePart& part) -> Json {
    return {{"scorer", part.scorer}, {"weight", part.weight}, {"score", part.score}};
  });
  Json json = {{"node", scored.placement.node},
               {"place", scored.place},
               {"devices", DevicesJson(scored.placement)},
               {"scores", std::move(scores)}};
  if (!scored.behind.empty()) json["behind"] = scored.behind;
  return json;
}

Json GangJson(const GangView& gang) {
  Json json = {{"gang", gang.id.text()},  {"state", gang.state},   {"minimum", gang.minimum},
               {"total", nullptr},        {"placed", gang.placed}, {"waiting", gang.waiting},
               {"planned", gang.planned}, {"held", gang.held},     {"why", gang.why}};
  if (gang.total) json["total"] = *gang.total;
  return json;
}

Json HoldersJson(const GpuHolders& holders) {
  Json most = ListOf(holders.most, [](const GpuHolder& holder) -> Json {
    return {{"pod", holder.pod}, {"node", holder.node}, {"gpus", holder.gpus}};
  });
  return {{"pods", holders.pods}, {"most", std::move(most)}};
}

Json ReportJson(const PodReport& report) {
  const PodExplanation& told = report.told;
  Json json = {{"version", kVersion},
               {"pod", told.pod.full_name()},
               {"uid", told.pod.uid},
               {"workload_classes", told.classes},
               {"state", told.placed ? StateOf(told.placed->state) : "waiting"},
               {"sentence", report.sentence},
               {"refusal", told.refusal},
               {"advice", told.advice},
               {"asks", AsksJson(told.shape, told.in_units)},
               {"priority", told.priority},
               {"age_seconds", SecondsJson(report.age)},
               {"gated", !report.held_back.empty()},
               {"scheduler", report.scheduler},
               {"scheduler_said", report.scheduler_said}};
  if (told.placed) {
    json["node"] = told.placed->placement.node;
    json["devices"] = DevicesJson(told.placed->placement);
    json["devices_known"] = !HasUnknownGpus(*told.placed);
    if (told.placed->on_other_gpus()) AddPlanned(*told.placed->planned, json);
  }
  if (report.gang) json["gang"] = GangJson(*report.gang);
  if (report.holders.pods > 0) json["holders"] = HoldersJson(report.holders);
  json["nodes"] = told.nodes;
  json["fitting"] = told.fitting;
  if (!told.lacking.empty()) json["lacking"] = told.lacking;
  if (told.kept > 0) json["kept_for_others"] = told.kept;
  if (told.reservation) {
    json["reservation"] = {{"node", told.reservation->node},
                           {"starts_in_seconds", SecondsJson(told.reservation->in)},
                           {"pods_that_end", told.reservation->ends},
                           {"by_pods_like_them", told.reservation->learned},
                           {"idle_gpu_seconds", SecondsJson(told.reservation->idle)}};
  }
  if (told.by_claim > 0) json["by_dra"] = told.by_claim;
  json["reasons"] = CountsJson(told.counts);
  json["closed"] = {{"nodes", told.closed.nodes},
                    {"would_take", told.closed.would_take},
                    {"text", told.closed.text}};
  json["kube_scheduler"] = {{"nodes", told.scheduler.any}};
  for (std::size_t i = 0; i < told.scheduler.by_check.size(); ++i) {
    json["kube_scheduler"][SchedulerCounts::kChecks[i].first] = told.scheduler.by_check[i];
  }
  json["best"] = ListOf(told.best, BestJson);
  json["nearest"] = ListOf(told.nearest, [](const NearNodeFacts& at) {
    Json near = NearJson(at);
    near["has"] = FactsJson(at.facts);
    return near;
  });
  if (told.preemption) {
    json["preemption"] = {{"helps", told.preemption->helps},
                          {"under_way", told.preemption->under_way},
                          {"node", told.preemption->node},
                          {"victims", told.preemption->victims},
                          {"text", told.preemption->text}};
  }
  if (told.rollout) {
    json["rollout"] = {{"deployment", told.rollout->deployment},
                       {"old_pod", told.rollout->old_pod},
                       {"node", told.rollout->node}};
  }
  if (report.room) {
    json["room"] = {{"for", report.room->name},
                    {"moves", report.room->moves},
                    {"least_moves", report.room->least_moves}};
  }
  json["recuts"] = ListOf(told.recuts, [](const NodeAdvice& at) -> Json {
    return {{"node", at.node}, {"product", at.product}, {"config", at.advice.config}};
  });
  json["models"] = ModelsJson(told.models);
  return json;
}

// As nvidia-smi prints them, without the NICs.
Json LinksJson(const GpuLinks& links) {
  const LinkMatrix& matrix = links.matrix();
  Json rows = Json::array();
  for (int a = 0; a < matrix.gpu_count(); ++a) {
    Json row = Json::array();
    for (int b = 0; b < matrix.gpu_count(); ++b) {
      row.push_back(a == b ? "X" : LinkText(matrix.link(a, b)));
    }
    rows.push_back(std::move(row));
  }
  return {{"source", links.origin().name}, {"matrix", std::move(rows)}};
}

// By one space, a line per value.
std::string Indented(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace);
}

// A whole answer: the version of its fields, and these.
std::string Answer(const Json& fields) {
  Json json = {{"version", kVersion}};
  json.update(fields);
  return Indented(json) + "\n";
}

}  // namespace

Json DevicesJson(const Placement& placement) {
  Json json = {{"gpus", GrantsJson(placement.grants)}};
  for (const MigGrant& grant : placement.mig) json["mig"].push_back(MigGrantJson(grant));
  if (placement.places > 0) json["places"] = placement.places;
  if (!placement.places_on.empty()) json["places_on"] = placement.places_on;
  return json;
}

Json CountsJson(const std::vector<ReasonCount>& counts) {
  return ListOf(counts, [](const ReasonCount& count) -> Json {
    return {{"reason", CodeOf(count.reason)},
            {"text", TextOf(count.reason)},
            {"nodes", count.nodes},
            {"preemption_can_help", VerdictOf(count.reason) == Verdict::kUnschedulable}};
  });
}

Json NearJson(const NearNodeFacts& at) {
  Json ways = ListOf(at.near.ways, [](const WayIn& way) {
    Json json = {{"change", way.code}, {"text", way.text}};
    if (!way.pods.empty()) json["pods"] = way.pods;
    return json;
  });
  return {{"node", at.facts.name},
          {"reason", CodeOf(at.near.reason)},
          {"lack", at.near.lack},
          {"fits", std::move(ways)}};
}

Json UseJson(const GpuUse& use) {
  return {{"gpus", use.gpus}, {"mig_devices", use.mig_devices}, {"pods", use.pods}};
}

Json ModelsJson(const std::vector<ModelSummary>& models) { return ListOf(models, ModelJson); }

std::string EncodeReport(const PodReport& report) { return Answer(ReportJson(report)); }

std::string EncodeReport(const NodeReport& node) {
  Json json = FactsJson(node);
  json["notes"] = NotesOn(node);
  for (const KeptFor& kept : node.kept_for) {
    json["kept_for"].push_back({{kept.is_gang ? "gang" : "pod", kept.name},
                                {"gpus", kept.gpus},
                                {"reserved", kept.awaits},
                                {"starts_in_seconds", SecondsJson(kept.in)},
                                {"text", berth::TextOf(kept)}});
  }
  const NodeMig& mig = node.spec().mig;
  if (mig.known() && mig->product != nullptr) {
    json["mig"]["devices"] = MigUseJson(*mig, node.node.mig());
  }
  if (node.spec().links.known()) json["links"] = LinksJson(node.spec().links);
  return Answer(json);
}

std::string EncodeReport(const GangReport& report) {
  Json json = GangJson(report.gang);
  json["sentence"] = report.sentence;
  json["preferences"] = report.wishes;
  json["members"] = ListOf(report.members, [](const GangMemberReport& member) -> Json {
    return {{"pod", member.pod}, {"state", member.state}, {"node", member.node}};
  });
  json["waiting_member"] = report.waiting ? ReportJson(*report.waiting) : Json(nullptr);
  return Answer(json);
}

std::string EncodeReport(const TopReport& report) {
  Json json = {{"models", ModelsJson(report.models)}, {"by_claims", report.by_claims}};
  json["waiting"] = ListOf(report.waiting, [](const WaitingClass& kind) -> Json {
    return {{"asks", kind.asks}, {"pods", kind.pods}, {"oldest_seconds", SecondsJson(kind.oldest)}};
  });
  return Answer(json);
}

std::string EncodeReport(const WaitingReport& report) {
  Json units = ListOf(report.units, [](const WaitingUnit& unit) -> Json {
    return {{unit.is_gang ? "gang" : "pod", unit.name},
            {"asks", unit.asks},
            {"age_seconds", SecondsJson(unit.age)},
            {"sentence", unit.sentence}};
  });
  return Answer({{"waiting", std::move(units)}, {"more", report.beyond}});
}

std::string EncodeReport(const NodesReport& report) {
  Json rows = ListOf(report.rows, [](const NodesReport::Row& row) -> Json {
    return {{"node", row.node}, {"model", row.model}, {"notes", row.notes}};
  });
  return Answer({{"gpu_nodes", report.gpu_nodes},
                 {"fine", report.gpu_nodes - report.rows.size()},
                 {"nodes", std::move(rows)}});
}

std::string EncodeReport(const FoundPods& found) {
  Json pods = ListOf(found.pods, [](const auto& at) -> Json {
    return {{"pod", at.first}, {"node", at.second}};
  });
  return Answer({{"pods", std::move(pods)}, {"more", found.beyond}});
}

std::string EncodeReport(const UseReport& report) {
  Json nodes = Json::array();
  GpuUse all;
  for (const NodeUse& at : report.nodes) {
    Json row = {{"node", at.node}};
    row.update(UseJson(at.use));
    nodes.push_back(std::move(row));
    all.gpus += at.use.gpus;
    all.mig_devices += at.use.mig_devices;
    all.pods += at.use.pods;
  }
  const char* const owner = report.by == Owner::kNamespace ? "namespace" : "workload_class";
  Json json = {{owner, report.name}};
  json.update(UseJson(all));
  json["nodes"] = std::move(nodes);
  return Answer(json);
}

std::string EncodeGangs(std::span<const GangView> gangs) {
  return Indented(ListOf(gangs, [](const GangView& gang) {
    Json json = GangJson(gang);
    json.erase("why");  // comes last
    json["age_seconds"] = std::chrono::duration<double>(gang.age).count();
    json["why"] = gang.why;
    return json;
  }));
}

std::string EncodeRepartition(std::span<const NodeAdvice> advices) {
  return Indented(ListOf(advices, [](const NodeAdvice& at) {
    Json json = {{"node", at.node},
                 {"product", at.product},
                 {"gpus", at.gpus},
                 {"config", at.advice.config},
                 {"fits", at.advice.fits},
                 {"fits_now", at.advice.fits_now},
                 {"fits_cut_at_will", nullptr}};
    if (at.advice.fits_cut_at_will) json["fits_cut_at_will"] = *at.advice.fits_cut_at_will;
    return json;
  }));
}

}  // namespace berth::wire
