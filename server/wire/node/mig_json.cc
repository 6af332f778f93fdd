// SPDX-License-Identifier: Apache-2.0
#include "server/wire/node/mig_json.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "cluster/node/node.h"
#include "scoring/mig/mig_tables.h"
#include "server/wire/pod/given_json.h"
#include "topology/mig/mig_product.h"

namespace berth::wire {
namespace {

template <class T>
Result<T> WithinPath(Result<T> result, const std::string& path) {
  return path.empty() ? result : Within(std::move(result), path);
}

Status CheckRange(const char* field, int value, int low, int high) {
  if (value >= low && value <= high) return {};
  return Invalid(std::string(field) + ": want " + std::to_string(low) + ".." +
                 std::to_string(high) + ", got " + std::to_string(value));
}

// nullptr where nothing is said and the label is not known either.
Result<std::shared_ptr<const MigProduct>> ProductOf(MigAnnouncement& announced,
                                                    std::string_view label, MigLibrary& library) {
  const std::string& name = announced.product;
  MigProductSpec& own = announced.own;
  const MigProduct* known = name.empty() ? MigProductOfLabel(label) : FindMigProduct(name);
  if (own.memory_units > 0) {
    BERTH_TRY_STATUS(CheckRange("memory_units", own.memory_units, 1, kMaxMigUnits));
    BERTH_TRY_STATUS(CheckRange("compute_slices", own.compute_slices, 0, kMaxMigUnits));
    own.name = name.empty() ? std::string(BareGpuProductLabel(label)) : name;
    BERTH_TRY(MigProduct product, MigProduct::Make(own));
    return library.Keep(std::move(product));
  }
  if (known == nullptr && (!name.empty() || !own.rows.empty())) {
    return Invalid(
        "product: want a GPU product that is known, or memory_units and profiles, got \"" + name +
        "\"");
  }
  if (known == nullptr || own.rows.empty()) {
    return known == nullptr ? nullptr : MigLibrary::Catalogued(*known);
  }
  MigProduct product = *known;
  for (MigRow& row : own.rows) {
    if (const auto replaced = known->RowOf(row.profile)) {
      const MigRow& before = known->row(*replaced);
      row.engines = before.engines;
      row.once_per_gpu = before.once_per_gpu;
    }
    BERTH_TRY(product, product.WithRow(row));
  }
  return library.Keep(std::move(product));
}

// The set of those that may be made: they need not go together.
Status BuildOffered(const MigProduct& product, const AnnouncedMigGpu& announced, MigGpu& gpu) {
  if (!announced.offered) return {};
  gpu.offered = 0;
  for (const MigInstance& instance : *announced.offered) {
    const auto row = product.RowOf(instance.profile);
    if (row && instance.start < 0) {
      gpu.offered |= product.PlacementsOf(*row);
      continue;
    }
    const auto placement = row ? product.PlacementAt(*row, instance.start) : std::nullopt;
    if (!placement) {
      return Invalid(announced.path + ".offered: want profiles of " + product.name() +
                     ", each with a start or at all of them, got " +
                     MigProfileName(instance.profile) + " at " + std::to_string(instance.start));
    }
    gpu.offered |= MigSet{1} << *placement;
  }
  return {};
}

// The layout of one GPU: instances whose start is known, then the others, the largest first.
Status LayOut(const MigProduct& product, const AnnouncedMigGpu& announced, MigGpu& gpu,
              MigKnowledge& knowledge) {
  MigLayout layout(product);
  std::vector<int> rows;  // of those without a start
  for (const MigInstance& instance : announced.instances) {
    const auto row = product.RowOf(instance.profile);
    const auto placement = row ? product.PlacementAt(*row, instance.start) : std::nullopt;
    const std::string name = MigProfileName(instance.profile);
    if (!row) {
      return Invalid(announced.path + ": want profiles of " + product.name() + ", got " + name);
    }
    if (instance.start < 0) {
      rows.insert(rows.end(), static_cast<std::size_t>(instance.count), *row);
    } else if (!placement) {
      return Invalid(announced.path + ": want a start of " + name + " on " + product.name() +
                     ", got " + std::to_string(instance.start));
    } else if (Status added = layout.Add(*placement); !added) {
      return Invalid(announced.path + ": " + added.error().message);
    } else if (!instance.uuid.empty()) {
      gpu.names.push_back({*placement, instance.uuid});
    }
  }
  gpu.instances = layout.set();
  if (!rows.empty()) knowledge = MigKnowledge::kPerGpu;
  std::ranges::stable_sort(rows, std::greater<>(),
                           [&](int row) { return product.row(row).memory_units; });
  for (const int row : rows) {
    if (AddByDriver(product, row, gpu.instances)) continue;
    return Invalid(announced.path + ": want instances that go together on " + product.name() +
                   ", got no room for all of them");
  }
  return {};
}

Status AddGpu(const AnnouncedMigGpu& announced, MigSpec& spec) {
  if (announced.index < 0 || announced.index > kMostMigGpuIndex) {
    return Invalid(announced.path + ".index: want 0.." + std::to_string(kMostMigGpuIndex) +
                   ", got " + std::to_string(announced.index));
  }
  if (spec.dynamic && !announced.instances.empty()) {
    return Invalid(announced.path + ".instances: want none where GPUs are cut when a pod comes");
  }
  MigGpu gpu{announced.index, announced.uuid};
  BERTH_TRY_STATUS(LayOut(*spec.product, announced, gpu, spec.knowledge));
  BERTH_TRY_STATUS(BuildOffered(*spec.product, announced, gpu));
  spec.gpus.push_back(std::move(gpu));
  return {};
}

constexpr int kMostCount = 1'000'000;
constexpr std::int64_t kMostMemoryMib = std::int64_t{1} << 30;
constexpr std::string_view kOwnAgent = "berth", kOtherAgent = "hami";

std::string_view KnowledgeName(MigKnowledge knowledge) {
  constexpr std::array<std::string_view, 3> kNames = {"counts", "per-gpu", "exact"};
  return kNames[static_cast<std::size_t>(knowledge)];
}

std::string_view AllocatorName(MigAllocator allocator) {
  constexpr std::array<std::string_view, 5> kNames = {"berth", "first-fit", "driver", "hami",
                                                      "kube-scheduler"};
  return kNames[static_cast<std::size_t>(allocator)];
}

// One of a few words; nothing where the text is empty.
template <class Enum>
Status ReadWord(const std::string& text, const std::string& path,
                std::initializer_list<Enum> values, std::string_view (*name)(Enum), Enum& value) {
  if (text.empty()) return {};
  std::string wanted;
  for (const Enum known : values) {
    if (name(known) == text) {
      value = known;
      return {};
    }
    wanted.append(wanted.empty() ? "" : ", ").append(name(known));
  }
  return Invalid(path + ": want one of " + wanted + ", got \"" + text + "\"");
}

Status ReadRow(const Json& json, const std::string& path, MigRow& row) {
  Fields fields(json, path);
  fields.Profile("profile", row.profile);
  fields.Int("size", 1, kMaxMigUnits, row.memory_units);
  fields.Int("max", 1, kMaxMigUnits, row.max_instances);
  fields.Int("memory_mib", 0, kMostMemoryMib, row.memory_mib);
  fields.List("starts", [&row](const Json& start, const std::string& place) -> Status {
    if (!start.is_number_integer() || start < 0 || start >= kMaxMigUnits) {
      return Invalid(place + ": want a memory unit from 0 to " + std::to_string(kMaxMigUnits - 1) +
                     ", got " + start.dump());
    }
    row.starts |= static_cast<MigUnits>(1U << start.get<unsigned>());
    return {};
  });
  BERTH_TRY_STATUS(fields.Finish());
  CompleteRow(row);
  return {};
}

Status ReadInstance(const Json& json, const std::string& path,
                    std::vector<MigInstance>& instances) {
  Fields fields(json, path);
  MigInstance instance;
  fields.Profile("profile", instance.profile);
  fields.Int("start", 0, kMaxMigUnits - 1, instance.start);
  fields.Int("count", 1, kMaxMigUnits, instance.count);
  fields.Text("uuid", instance.uuid);
  BERTH_TRY_STATUS(fields.Finish());
  BERTH_TRY_STATUS(CheckGpuUuid(path + ".uuid", instance.uuid));
  if (instance.start < 0 && !instance.uuid.empty()) {
    return Invalid(path + ".uuid: want a start beside it, got none");
  }
  if (instance.start >= 0 && instance.count > 1) {
    return Invalid(path + ": want start or count, got both");
  }
  instances.push_back(instance);
  return {};
}

Status ReadGpu(const Json& json, const std::string& path, std::vector<AnnouncedMigGpu>& gpus) {
  Fields fields(json, path);
  AnnouncedMigGpu& gpu = gpus.emplace_back();
  gpu.path = path;
  fields.Int("index", 0, kMostMigGpuIndex, gpu.index);
  fields.Text("uuid", gpu.uuid);
  fields.List("instances", [&gpu](const Json& instance, const std::string& place) {
    return ReadInstance(instance, place, gpu.instances);
  });
  if (fields.Peek("offered") != nullptr) gpu.offered.emplace();
  fields.List("offered", [&gpu](const Json& instance, const std::string& place) {
    return ReadInstance(instance, place, *gpu.offered);
  });
  BERTH_TRY_STATUS(fields.Finish());
  if (gpu.index < 0) return Invalid(path + ".index: want the index of a GPU, got none");
  return {};
}

Status ReadShared(const Json& json, const std::string& path, MigSpec& spec) {
  Fields fields(json, path);
  MigStock stock;
  fields.Profile("profile", stock.resource.profile);
  fields.Bool("renamed", stock.resource.shared);
  fields.Int("count", 0, kMostCount, stock.count);
  BERTH_TRY_STATUS(fields.Finish());
  spec.shared.push_back(stock);
  return {};
}

// Calls add_more(placement, its JSON).
template <class AddMore>
Json InstancesJson(const MigProduct& product, MigSet instances, AddMore add_more) {
  Json json = Json::array();
  for (; instances != 0; instances &= instances - 1) {
    const int placement = std::countr_zero(instances);
    add_more(placement,
             json.emplace_back(Json{{"profile", MigProfileName(product.row_of(placement).profile)},
                                    {"start", product.placement(placement).start}}));
  }
  return json;
}

// With the names of those whose names are known.
Json NamedJson(const MigProduct& product, const MigGpu& gpu) {
  return InstancesJson(product, gpu.instances, [&gpu](int placement, Json& json) {
    const auto name = std::ranges::find(gpu.names, placement, &MigName::placement);
    if (name != gpu.names.end()) json["uuid"] = name->id;
  });
}

// With the memory units that each takes.
Json SizedJson(const MigProduct& product, MigSet instances) {
  return InstancesJson(product, instances, [&product](int placement, Json& json) {
    json["size"] = product.row_of(placement).memory_units;
  });
}

Json RowsJson(const MigProduct& product) {
  Json json = Json::array();
  for (const MigRow& row : product.rows()) {
    Json starts = Json::array();
    for (int start = 0; start < kMaxMigUnits; ++start) {
      if ((row.starts >> start & 1) != 0) starts.push_back(start);
    }
    json.push_back({{"profile", MigProfileName(row.profile)},
                    {"size", row.memory_units},
                    {"starts", std::move(starts)},
                    {"max", row.max_instances},
                    {"memory_mib", row.memory_mib}});
  }
  return json;
}

void AddProduct(const MigProduct& product, Json& json) {
  const MigProduct* const known = FindMigProduct(product.name());
  json["product"] = product.name();
  if (known != nullptr && *known == product) return;
  if (known == nullptr) {
    json["memory_units"] = product.memory_units();
    json["compute_slices"] = product.compute_slices();
  }
  json["profiles"] = RowsJson(product);
}

Status ReadAllocator(const std::string& name, const std::string& path, MigSpec& spec) {
  using enum MigAllocator;
  spec.allocator = spec.dynamic ? kBerth : kFirstFit;
  if (name == AllocatorName(kKubeScheduler)) {
    spec.allocator = kKubeScheduler;  // not for people to say
    return {};
  }
  return ReadWord(name, path, {kBerth, kFirstFit, kDriver, kHighOrLow}, AllocatorName,
                  spec.allocator);
}

Status ReadAgent(const std::string& name, const std::string& path, std::string& agent) {
  if (name.empty() || name == kOwnAgent) return {};
  if (name != kOtherAgent) {
    return Invalid(path + ": want one of " + std::string(kOwnAgent) + ", " +
                   std::string(kOtherAgent) + ", got \"" + name + "\"");
  }
  agent = name;
  return {};
}

Status ReadWords(const std::string& knowledge, const std::string& trouble, const std::string& dot,
                 MigAnnouncement& announced) {
  if (!knowledge.empty()) {
    BERTH_TRY_STATUS(ReadWord(knowledge, dot + "knowledge",
                              {MigKnowledge::kCounts, MigKnowledge::kPerGpu, MigKnowledge::kExact},
                              KnowledgeName, announced.knowledge.emplace()));
  }
  return ReadWord(
      trouble, dot + "trouble",
      {MigTrouble::kChanging, MigTrouble::kFailed, MigTrouble::kInvalid, MigTrouble::kStale},
      MigTroubleName, announced.rest.trouble);
}

}  // namespace

void CompleteRow(MigRow& row) {
  if (row.max_instances == 0) row.max_instances = std::popcount(row.starts);
  row.once_per_gpu =
      row.profile.extension == MigExtension::kMe || row.profile.extension == MigExtension::kMeAll;
  row.source = "the node";
}

bool AddByDriver(const MigProduct& product, int row, MigSet& instances) {
  const auto placement = MigStartBy(MigStartRule::kDriver, product, instances, row);
  if (placement) instances |= MigSet{1} << *placement;
  return placement.has_value();
}

Result<MigSpec> BuildMig(MigAnnouncement announced, const std::string& path, std::string_view label,
                         MigLibrary& library) {
  MigSpec spec = std::move(announced.rest);
  spec.gpus.clear();
  spec.product = nullptr;
  spec.knowledge = MigKnowledge::kExact;
  if (!announced.gpus.empty()) {
    BERTH_TRY(spec.product, WithinPath(ProductOf(announced, label, library), path));
    if (spec.product == nullptr) {
      return Invalid((path.empty() ? "" : path + ".") +
                     "product: want a GPU product, since the node's label names none");
    }
  }
  for (const AnnouncedMigGpu& gpu : announced.gpus) BERTH_TRY_STATUS(AddGpu(gpu, spec));
  if (!spec.by_claims()) std::ranges::sort(spec.gpus, {}, &MigGpu::index);
  if (announced.knowledge) spec.knowledge = *announced.knowledge;
  BERTH_TRY_STATUS(WithinPath(Validate(spec), path));
  // Here, and not when the first pod is placed on such a node.
  if (spec.dynamic && !spec.foreign && spec.product != nullptr) (void)MigTablesOf(spec.product);
  return spec;
}

Result<MigSpec> ReadMig(const Json& json, const std::string& path, std::string_view label,
                        MigLibrary& library) {
  Fields fields(json, path);
  MigAnnouncement announced;
  MigSpec& rest = announced.rest;
  std::string partitioning = "static", allocator, dialect, knowledge, trouble;
  int version = 1;
  fields.Int("version", 1, 1, version);
  fields.Text("product", announced.product);
  fields.Int("memory_units", 1, kMaxMigUnits, announced.own.memory_units);
  fields.Int("compute_slices", 1, kMaxMigUnits, announced.own.compute_slices);
  fields.List("profiles", [&announced](const Json& row, const std::string& place) {
    return ReadRow(row, place, announced.own.rows.emplace_back());
  });
  fields.Text("partitioning", partitioning);
  fields.Text("allocator", allocator);
  fields.Bool("foreign", rest.foreign);
  fields.Bool("fixed", rest.fixed);
  fields.Text("dialect", dialect);
  fields.Text("knowledge", knowledge);
  fields.List("gpus", [&announced](const Json& gpu, const std::string& place) {
    return ReadGpu(gpu, place, announced.gpus);
  });
  fields.List("shared", [&rest](const Json& stock, const std::string& place) {
    return ReadShared(stock, place, rest);
  });
  fields.Profile("single", rest.single);
  fields.Integer("single_memory_mib", 0, kMostMemoryMib, rest.single_memory_mib);
  fields.Text("trouble", trouble);
  BERTH_TRY_STATUS(fields.Finish());
  const std::string dot = path.empty() ? "" : path + ".";
  if (partitioning != "static" && partitioning != "dynamic") {
    return Invalid(dot + "partitioning: want static or dynamic, got \"" + partitioning + "\"");
  }
  rest.dynamic = partitioning == "dynamic";
  BERTH_TRY_STATUS(ReadAllocator(allocator, dot + "allocator", rest));
  BERTH_TRY_STATUS(ReadAgent(dialect, dot + "dialect", rest.agent));
  BERTH_TRY_STATUS(ReadWords(knowledge, trouble, dot, announced));
  return BuildMig(std::move(announced), path, label, library);
}

Json MigJson(const MigSpec& spec) {
  Json json = {{"partitioning", spec.dynamic ? "dynamic" : "static"},
               {"allocator", AllocatorName(spec.allocator)},
               {"knowledge", KnowledgeName(spec.knowledge)}};
  if (spec.foreign) json["foreign"] = true;
  if (spec.fixed) json["fixed"] = true;
  if (spec.product != nullptr) AddProduct(*spec.product, json);
  if (!spec.agent.empty()) json["dialect"] = spec.agent;
  Json gpus = Json::array();
  for (const MigGpu& gpu : spec.gpus) {
    Json entry = {{"index", gpu.index}, {"uuid", gpu.uuid}};
    if (!spec.dynamic) entry["instances"] = NamedJson(*spec.product, gpu);
    if (~gpu.offered != 0) {
      entry["offered"] = InstancesJson(*spec.product, gpu.offered, [](int, Json&) {});
    }
    gpus.push_back(std::move(entry));
  }
  json["gpus"] = std::move(gpus);
  Json shared = ListOf(spec.shared, [](const MigStock& stock) -> Json {
    return {{"profile", MigProfileName(stock.resource.profile)},
            {"renamed", stock.resource.shared},
            {"count", stock.count}};
  });
  if (!shared.empty()) json["shared"] = std::move(shared);
  if (spec.single) {
    json["single"] = MigProfileName(*spec.single);
    json["single_memory_mib"] = spec.single_memory_mib;
  }
  if (spec.trouble != MigTrouble::kNone) json["trouble"] = MigTroubleName(spec.trouble);
  return json;
}

Json MigUseJson(const MigSpec& spec, const MigUse& use) {
  Json json = Json::array();
  for (std::size_t gpu = 0; gpu < spec.gpus.size(); ++gpu) {
    const MigSet taken = use.taken()[gpu];
    json.push_back({{"gpu", spec.gpus[gpu].index},
                    {"units", spec.product->memory_units()},
                    {"taken", SizedJson(*spec.product, taken)},
                    {"free", SizedJson(*spec.product, spec.gpus[gpu].instances & ~taken)}});
  }
  return json;
}

}  // namespace berth::wire
