// SPDX-License-Identifier: Apache-2.0
#include "server/wire/node/node_json.h"

#include <simdjson.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/quantity.h"
#include "server/wire/json/json_text.h"
#include "server/wire/json/object_reader.h"
#include "server/wire/json/selector_json.h"
#include "server/wire/node/gpu_conditions.h"
#include "server/wire/node/node_gpu_facts.h"
#include "server/wire/node/topology_json.h"
#include "server/wire/pod/pod_parts.h"

namespace berth::wire {
namespace {

// Since 1970; 0: no time.
std::int64_t SecondsOf(std::string_view time) {
  const std::optional<WallTime> read = ParseTime(time);
  if (!read) return 0;
  return std::chrono::duration_cast<std::chrono::seconds>(read->time_since_epoch()).count();
}

class NodeReader {
 public:
  explicit NodeReader(const NodeRules& rules) : rules_(rules), conditions_(rules.gpu_conditions) {}

  Result<DecodedNode> Read(object node) {
    for (auto field : node) {
      const std::string_view key = field.unescaped_key();
      value content = field.value();
      if (content.is_null()) continue;
      if (IsField(key, "kind")) {
        const std::string_view kind = content.get_string();
        if (kind != "Node") return Invalid(".kind: want Node, got \"" + std::string(kind) + "\"");
      }
      if (IsField(key, "metadata")) ReadMetadata(content.get_object());
      if (IsField(key, "spec")) ReadSpec(content.get_object());
      if (IsField(key, "status")) ReadStatus(content.get_object());
    }
    AddCordon();
    gpus_ =
        ReadNodeGpuFacts(spec_.labels, rules_.labels, *rules_.machine_types, CountedOf(devices_));
    spec_.gpu_model = std::move(gpus_.model);
    const NodeFacts facts{spec_.labels, spec_.gpu_model,    annotations_, *rules_.mig,
                          others_,      gpus_.machine_gpus, said_};
    for (const Dialect& dialect : *rules_.dialects) {
      auto reading = dialect.ReadNode(facts);
      if (reading == nullptr) continue;
      const bool has_agent = reading->has_agent();
      readings_.push_back(std::move(reading));
      if (has_agent && dialect.keys().grants_of_own_nodes)
        spec_.agents.emplace_back(dialect.name());
    }
    // The kubelet keeps the names, with 0 devices.
    const bool had_plugin = !devices_.empty() || !mig_devices_.empty();
    AddGpus();
    AddFact(gpu_problem_, TakeKinds(kinds_, registered_, spec_));
    KeepToOneProduct();
    std::string passed_over = unread_;
    AddFact(passed_over, AddLinks());
    AddMig(passed_over);
    if (const auto unwell = annotations_.find(kGpuHealthKey); unwell != annotations_.end()) {
      AddFact(passed_over, CloseUnwell(unwell->second, spec_));
    }
    conditions_.CloseIn(spec_, as_chosen_);
    spec_.gpus_to_come = !spec_.has_gpus() && (had_plugin || !spec_.agents.empty() ||
                                               IsGpuMachine(spec_.labels, *rules_.machine_types));
    if (spec_.gpus_to_come && !offered_once_.empty()) AmountOf(spec_.others, offered_once_);
    AddFact(passed_over, rules_.traits.AddTo(spec_, of_traits_));
    spec_.passed_over = passed_over;
    AddFact(passed_over, spec_.gpu_contradiction);
    BERTH_TRY_STATUS(Validate(spec_));
    spec_.labels.shrink_to_fit();  // it is kept as it is, for each of many nodes
    spec_.traits.shrink_to_fit();
    spec_.others.shrink_to_fit();
    return DecodedNode{std::move(spec_), std::move(passed_over), std::move(hold_),
                       std::move(unread_)};
  }

  [[nodiscard]] const std::string& name() const { return spec_.name; }

 private:
  // What is of another type than Kubernetes gives it costs that field.
  template <class Read>
  void Fact(std::string_view where, std::string_view key, value content, Read read) {
    try {
      AtField(key, content, read);
    } catch (const simdjson::simdjson_error& wrong) {
      if (wrong.error() != simdjson::INCORRECT_TYPE) throw;  // no JSON
      if (unread_.empty()) unread_.append(where).append(SentenceOf(wrong));
    }
  }

  void NoteUnread(std::string_view where, std::string_view key, std::string_view wrong) {
    if (unread_.empty()) unread_.append(where).append(key).append(": ").append(wrong);
  }

  void ReadMetadata(object metadata) {
    ForEachField(metadata, [this](std::string_view key, value content) {
      if (IsField(key, "name")) spec_.name = std::string_view(content.get_string());
      Fact(".metadata.", key, content, [&] {
        if (IsField(key, "labels")) spec_.labels = ReadLabels(content.get_object());
        if (IsField(key, "annotations")) ReadAnnotations(content.get_object());
      });
    });
  }

  void ReadAnnotations(object annotations) {
    ForEachField(annotations, [this](std::string_view key, value content) {
      if (key == kHoldMark || std::ranges::find(kHoldKeys, key) != kHoldKeys.end()) {
        Fact(".metadata.annotations.", key, content,
             [&] { hold_.Take(key, content.get_string()); });
        return;
      }
      if (!rules_.dialects->ReadsNode(key)) return;
      Fact(".metadata.annotations.", key, content, [&] {
        annotations_.insert_or_assign(std::string(key), std::string_view(content.get_string()));
      });
    });
  }

  void ReadSpec(object spec) {
    ForEachField(spec, [this](std::string_view key, value content) {
      Fact(".spec.", key, content, [&] {
        if (IsField(key, "taints")) TakeTaints(ReadTaints(content.get_array()));
        if (IsField(key, "unschedulable")) cordoned_ = content.get_bool();
      });
    });
  }

  void TakeTaints(std::vector<Taint> taints) {
    for (Taint& taint : taints) {
      const bool soft = taint.effect == TaintEffect::kPreferNoSchedule;
      (soft ? spec_.soft_taints : spec_.taints).push_back(std::move(taint));
    }
  }

  // Kubernetes treats the field as this taint, and its controller adds it as well, if later.
  void AddCordon() {
    const Taint cordon{std::string(kCordonTaint), "", TaintEffect::kNoSchedule};
    if (cordoned_ && std::ranges::find(spec_.taints, cordon) == spec_.taints.end()) {
      spec_.taints.push_back(cordon);
    }
  }

  void ReadStatus(object status) {
    ForEachField(status, [this](std::string_view key, value content) {
      Fact(".status.", key, content, [&] {
        if (IsField(key, "allocatable")) ReadAllocatable(content.get_object());
        if (IsField(key, "capacity")) ReadCapacity(content.get_object());
        if (IsField(key, "conditions")) ReadConditions(content.get_array());
      });
    });
  }

  void ReadAllocatable(object allocatable) {
    for (auto field : allocatable) {
      const std::string_view name = field.unescaped_key();
      const auto gpus = GpusBy(name);
      const bool mig = name.starts_with(kMigResourcePrefix);
      const bool other = !gpus && rules_.dialects->ReadsNodeResource(name);
      const bool of_trait = rules_.traits.Reads(name);
      const bool native = name == "cpu" || name == "memory" || name == "ephemeral-storage";
      const bool counted = name == "pods" || (!gpus && !mig && !native && IsCountedElsewhere(name));
      if (!gpus && !mig && !other && !of_trait && !native && !counted) continue;
      const auto quantity = ReadAmount(".status.allocatable.", name, field.value(), gpus || native);
      if (!quantity) continue;
      if (name == "cpu") spec_.cpu_milli = Within(quantity->MilliValue(), kMostCpuMilli);
      if (name == "memory") spec_.memory_bytes = Within(quantity->Value(), kMostMemoryBytes);
      if (name == "ephemeral-storage") {
        spec_.ephemeral_bytes = Within(quantity->Value(), kMostMemoryBytes);
      }
      if (gpus) Raise(Devices(*gpus, name).allocatable, quantity->Value());
      if ((gpus || mig) && quantity->sign() == 0) offered_once_ = name;
      if (mig) AddMigDevices(name, quantity->Value());
      if (other) CountOf(others_, name).allocatable = quantity->Value();
      if (of_trait && quantity->Value() > 0) of_traits_.emplace_back(name);
      if (counted) AddOther(name, quantity->Value());
    }
  }

  static std::int64_t Within(std::int64_t amount, std::int64_t most) {
    return std::clamp<std::int64_t>(amount, 0, most);
  }

  // What kube-scheduler counts there, and Berth gives to nobody.
  void AddOther(std::string_view name, std::int64_t amount) {
    if (name == "pods") {
      spec_.most_pods = static_cast<int>(std::clamp<std::int64_t>(amount, 0, kMostPods));
    } else if (amount > 0) {
      if (std::int64_t* const has = AmountOf(spec_.others, name))
        *has = std::min(amount, kMostOtherAmount);
    }
  }

  // Nothing where it does not count whole GPUs.
  [[nodiscard]] std::optional<GpuWord> GpusBy(std::string_view name) const {
    const auto word = rules_.words.Find(name);
    return word && word->meaning == ResourceMeaning::kWholeGpus ? word : std::nullopt;
  }

  DeviceCount& Devices(const GpuWord& word, std::string_view name) {
    const std::size_t known = devices_.size();
    DeviceCount& count = CountOf(devices_, word.CountedAs(name));
    if (devices_.size() > known) count.rank = word.rank;
    return count;
  }

  // The same devices may be there by several names.
  static void Raise(std::int64_t& count, std::int64_t found) { count = std::max(count, found); }

  static DeviceCount& CountOf(std::vector<DeviceCount>& counts, std::string_view resource) {
    const auto known = std::ranges::find(counts, resource, &DeviceCount::resource);
    return known != counts.end() ? *known : counts.emplace_back(DeviceCount{std::string(resource)});
  }

  // Of the GPUs alone: what is not healthy is not allocatable, and there all the same.
  void ReadCapacity(object capacity) {
    for (auto field : capacity) {
      const std::string_view name = field.unescaped_key();
      const auto gpus = GpusBy(name);
      const bool other = !gpus && rules_.dialects->ReadsNodeResource(name);
      if (!gpus && !other) continue;
      const auto quantity = ReadAmount(".status.capacity.", name, field.value(), gpus.has_value());
      if (!quantity) continue;
      DeviceCount& count = gpus ? Devices(*gpus, name) : CountOf(others_, name);
      Raise(count.capacity, quantity->Value());
    }
  }

  // Nothing where it cannot be read.
  std::optional<Quantity> ReadAmount(std::string_view where, std::string_view name, value content,
                                     bool is_count) {
    std::optional<Quantity> read;
    Fact(where, name, content, [&] {
      const std::string_view text = ScalarText(content);
      const auto quantity = Quantity::Parse(text);
      if (quantity && (!is_count || quantity->sign() >= 0)) {
        read = *quantity;
      } else {
        NoteUnread(
            where, name,
            quantity ? "want 0 or more, got " + std::string(text) : quantity.error().message);
      }
    });
    return read;
  }

  // A name that is none is passed over: the node has the rest.
  void AddMigDevices(std::string_view name, std::int64_t count) {
    const auto resource = ParseMigResource(name);
    if (resource && count >= 0 && count <= kMostMigDevices) {
      mig_devices_.push_back({*resource, static_cast<int>(count)});
      return;
    }
    if (!mig_problem_.empty()) return;
    mig_problem_ =
        ".status.allocatable." + std::string(name) + ": " +
        (resource ? "want 0.." + std::to_string(kMostMigDevices) + ", got " + std::to_string(count)
                  : resource.error().message);
  }

  // A node without a Ready condition is taken as it is.
  void ReadConditions(array conditions) {
    for (auto element : conditions) {
      std::string_view type, status, message, changed;
      value condition = element.value();
      Fact(".status.conditions", "", condition, [&] {
        ForEachField(condition.get_object(), [&](std::string_view key, value content) {
          if (IsField(key, "type")) type = content.get_string();
          if (IsField(key, "status")) status = content.get_string();
          // The node does not fail for a text that is for people.
          if (IsField(key, "message") && content.get_string().get(message)) message = {};
          if (IsField(key, "lastTransitionTime") && content.get_string().get(changed)) changed = {};
        });
      });
      if (type == "Ready" && status.data() != nullptr) {  // it could be read
        spec_.ready = status == "True";
        spec_.ready_since = SecondsOf(changed);
      }
      if (rules_.dialects->ReadsCondition(type)) said_.insert_or_assign(std::string(type), status);
      if (status == "True" && SaysThatItLeaves(type)) spec_.traits.emplace_back(kTraitLeaving);
      conditions_.Read(type, status, message);
    }
  }

  void AddGpus() {
    GpuDraft found;
    found.devices = std::move(devices_);
    found.gpu_memory_mib = gpus_.memory_mib;
    found.parts = gpus_.parts;
    found.AddProblem(gpus_.problem);
    for (const auto& reading : readings_) reading->CountGpus(found);
    gpu_problem_ = std::move(found.problem);
    spec_.agent_lacks = std::move(found.agent_lacks);
    kinds_ = std::move(found.kinds);
    spec_.gpu_contradiction = std::move(found.contradiction);
    if (found.shared) return AddShared(*std::move(found.shared));
    spec_.places = found.places;
    if (spec_.gpu_model.empty()) spec_.gpu_model = std::move(found.model);
    const bool may_have_several = rules_.several_replicas == SeveralReplicas::kAllow ||
                                  (rules_.several_replicas == SeveralReplicas::kAuto &&
                                   found.places.sharing == GpuSharing::kTimeSlicing);
    spec_.places.several =
        found.places.several && may_have_several && spec_.gpu_contradiction.empty();
    spec_.missing = found.missing;
    spec_.gpu_resource = std::move(found.resource);
    const GpuSpec gpu{.uuid = "", .memory_mib = gpus_.memory_mib};
    spec_.gpus.assign(static_cast<std::size_t>(found.gpus), gpu);
    spec_.gpus_are_parts = gpus_.parts && found.gpus > 0;
    spec_.shares_need_uuids = rules_.shares_need_uuids;
    if (!spec_.gpus.empty() && !found.places.foreign) {
      spec_.share_agent = std::move(found.agent_beside);
      spec_.agent_serves_all = !spec_.share_agent.empty();
    }
    if (!spec_.gpus.empty() && spec_.share_agent.empty() && !spec_.gpus_are_parts) {
      spec_.part_agent = std::move(found.part_agent);
      spec_.part_agent_ready = found.part_agent_ready;
      if (spec_.part_agent_ready) spec_.share_isolation = Isolation::kMemory;
    }
    spec_.topology_manager = found.topology_manager;
    for (const DeviceCount& other : found.others) {
      if (std::int64_t* const has = AmountOf(spec_.other_gpus, other.resource)) {
        *has = std::min<std::int64_t>(other.allocatable, kMaxGpuPlaces);
      }
    }
    const bool has = !spec_.gpus.empty() || (spec_.places.count > 0 && !spec_.places.foreign);
    spec_.carries_out =
        has && spec_.share_agent.empty() &&
        std::ranges::find(found.carried_out, spec_.gpu_resource) != found.carried_out.end();
    as_chosen_ = spec_.carries_out;
    if (!found.uuids) return;
    if (!spec_.gpus.empty()) return AddUuids(*found.uuids);
    if (!found.uuids->by_gpu) return;
    std::vector<std::string>& uuids = *found.uuids->by_gpu;
    if (spec_.places.count == 0) {
      spec_.beside.uuids = std::move(uuids);
    } else if (std::ssize(uuids) == spec_.places.gpus && uuids.size() <= kMaxGpusPerNode &&
               spec_.gpu_contradiction.empty()) {
      spec_.places.uuids = std::move(uuids);
    }
  }

  void AddShared(SharedGpus said) {
    as_chosen_ = true;
    registered_ = {.memory = true, .models = !said.models.empty()};
    spec_.gpus = std::move(said.gpus);
    const bool are_alike =
        std::ranges::adjacent_find(said.models, std::not_equal_to<>()) == said.models.end();
    if (!are_alike) {
      spec_.gpu_models = std::move(said.models);
    } else if (spec_.gpu_model.empty() && !said.models.empty()) {
      spec_.gpu_model = std::move(said.models.front());
    }
    spec_.missing = said.missing;
    spec_.gpu_resource = std::move(said.resource);
    spec_.share_agent = std::move(said.agent);
    spec_.agent_serves_all = said.serves_all;
    spec_.share_isolation = said.isolation;
  }

  void AddUuids(AnnouncedUuids& said) {
    const std::size_t gpus = spec_.gpus.size();
    std::string wrong = said.by_gpu ? "" : said.by_gpu.error().message;
    if (said.by_gpu && said.by_gpu->size() != gpus) {
      wrong = "want those of the node's " + std::to_string(gpus) + " GPUs, got " +
              std::to_string(said.by_gpu->size());
    }
    if (!wrong.empty()) {
      AddFact(gpu_problem_, "annotation " + std::string(said.annotation) + ": " + wrong);
      return;
    }
    for (std::size_t gpu = 0; gpu < gpus; ++gpu) {
      spec_.gpus[gpu].uuid = std::move((*said.by_gpu)[gpu]);
    }
  }

  // Nobody says which GPUs are of the labelled product. One that fell off the bus is of no other.
  void KeepToOneProduct() {
    const auto gpus = std::ssize(spec_.gpus);
    const std::ptrdiff_t of_it = gpus_.of_product, known = spec_.carries_out ? 0 : of_it;
    if (of_it == 0 || of_it + spec_.missing >= gpus || !kinds_.empty() || registered_.memory)
      return;
    spec_.gpu_models.resize(spec_.gpus.size());
    std::fill_n(spec_.gpu_models.begin(), known, spec_.gpu_model);
    std::for_each(spec_.gpus.begin() + known, spec_.gpus.end(),
                  [](GpuSpec& gpu) { gpu.memory_mib = 0; });
  }

  // Returns what could not be read.
  std::string AddLinks() {
    // Parts of one GPU are linked otherwise than the GPUs that the catalogue knows.
    const bool has_product = !spec_.gpus_are_parts && spec_.gpu_models.empty();
    const std::string_view product = has_product ? std::string_view(spec_.gpu_model) : "";
    const std::size_t gpus = std::max(spec_.gpus.size(), spec_.beside.uuids.size());
    NodeLinks found = ReadNodeLinks(readings_, product, static_cast<int>(gpus), *rules_.links);
    if (spec_.gpus.empty()) {
      AddBeside(std::move(found.links));
      return std::move(found.problem);
    }
    spec_.links = std::move(found.links);
    for (std::size_t gpu = 0; gpu < found.uuids.size(); ++gpu) {
      spec_.gpus[gpu].uuid = std::move(found.uuids[gpu]);
    }
    return std::move(found.problem);
  }

  // What the catalogue knows of GPUs that the node does not offer follows from their slices.
  void AddBeside(GpuLinks links) {
    if (links.known() && links.source() > LinkSource::kCatalogue) {
      spec_.beside.links = std::move(links);
    } else {
      spec_.beside = {};
    }
  }

  void AddMig(std::string& problem) {
    MigDraft found;
    found.gpus = std::ssize(spec_.gpus);
    found.places = spec_.places.count;
    found.gpu_memory_mib = spec_.gpus.empty() ? 0 : spec_.gpus.front().memory_mib;
    found.allocatable = std::move(mig_devices_);
    for (const auto& reading : readings_) reading->AddMig(found);
    if (found.spec) spec_.mig = NodeMig(*std::move(found.spec));
    TakeLeftOver();
    // The index among the whole GPUs names none of the machine.
    const bool has_names = spec_.gpus.empty() || !spec_.gpus.front().uuid.empty();
    if (spec_.mig.known() && !has_names && !std::exchange(spec_.part_agent, "").empty()) {
      spec_.agent_lacks = "has MIG devices: write the UUIDs of its GPUs into berth.dev/gpu-uuids";
      AddFact(gpu_problem_, "GPU shares: want berth.dev/gpu-uuids on a node with MIG devices");
    }
    for (const std::string& passed_over : {gpu_problem_, mig_problem_, found.problem}) {
      AddFact(problem, passed_over);
    }
  }

  // Whole GPUs that are MIG devices by now: the kubelet keeps the resource of the strategy before.
  void TakeLeftOver() {
    const bool is_known = !spec_.gpus.empty() && !spec_.gpus.front().uuid.empty();
    if (!spec_.mig.known() || spec_.mig->single || spec_.gpus.empty() || is_known) return;
    const int all = std::max(static_cast<int>(gpus_.machine_gpus),
                             LabelledGpus(spec_.labels, GpuVendors().front()));
    const auto whole = static_cast<int>(spec_.gpus.size());
    const int surplus = std::min(whole + static_cast<int>(spec_.mig->gpus.size()) - all, whole);
    // Of other GPUs than the labels are, as these have no MIG.
    const auto has = VersionOf(spec_.labels, Versioned::kCapability);
    const bool is_of_other = has && (has->major < 8 || (has->major == 8 && has->minor > 0));
    if (all == 0 || surplus <= 0 || spec_.mig->gpus.empty() || is_of_other) return;
    spec_.links = {};
    if (spec_.missing >= surplus) {
      spec_.gpus.resize(static_cast<std::size_t>(whole - surplus));
      spec_.missing -= surplus;
      return;
    }
    spec_.gpus.clear();
    spec_.places.count = whole;
    spec_.gpu_contradiction = std::to_string(whole) + " " + spec_.gpu_resource +
                              " are offered beside MIG devices, but the node has " +
                              std::to_string(all) +
                              " GPUs by its labels; restart its device plugin";
  }

  static constexpr std::int64_t kMostPods = 1'000'000;
  static constexpr std::int64_t kMostMigDevices = 10'000;  // with their users, of one name

  const NodeRules& rules_;
  NodeSpec spec_;
  std::map<std::string, std::string, std::less<>> annotations_;  // that some dialect reads
  std::map<std::string, std::string, std::less<>> said_;         // conditions, by type; the same
  NodeHold hold_;
  NodeReadings readings_;
  std::vector<MigStock> mig_devices_;
  std::vector<DeviceCount> devices_;    // by GPU resource that the node has
  std::vector<DeviceCount> others_;     // that some dialect reads
  std::vector<std::string> of_traits_;  // resources that it has some of, and a trait depends on
  NodeGpuFacts gpus_;
  GpuConditions conditions_;
  std::vector<GpuKind> kinds_;
  Registered registered_;
  bool as_chosen_ = false;  // its agent hands out the GPUs that Berth chose
  std::string gpu_problem_;
  std::string mig_problem_;
  std::string offered_once_;  // GPUs or MIG devices by name, with 0 left
  bool cordoned_ = false;
  std::string unread_;  // DecodedNode
};

}  // namespace

NodeRules::NodeRules(const Config& config, std::shared_ptr<const Dialects> all)
    : words(config.resources),
      labels(config.node_labels),
      shares_need_uuids(config.shares.unenforced == UnenforcedShares::kRefuse),
      several_replicas(config.shares.several_replicas),
      machine_types(std::make_shared<const MachineTypes>(config.machine_types)),
      traits(config, machine_types),
      dialects(std::move(all)) {
  for (const std::string& condition : config.gpu_nodes.conditions) {
    auto rule = ParseConditionRule(condition);
    BERTH_CHECK(rule.has_value());  // the configuration was validated
    gpu_conditions.push_back(*std::move(rule));
  }
}

Result<std::vector<DecodedNode>> DecodeNodeList(const PaddedText& text, const NodeRules& rules) {
  std::vector<DecodedNode> nodes;
  std::string place = "list";
  try {
    simdjson::ondemand::parser parser;
    simdjson::ondemand::document document = parser.iterate(ViewOf(text));
    for (auto field : document.get_object()) {
      if (!IsField(field.unescaped_key(), "items")) continue;
      value items = field.value();
      if (items.is_null()) continue;
      for (auto element : items.get_array()) {
        place = "items[" + std::to_string(nodes.size()) + "]";
        BERTH_TRY(DecodedNode node, Within(NodeReader(rules).Read(element.get_object()), place));
        nodes.push_back(std::move(node));
      }
    }
  } catch (const simdjson::simdjson_error& problem) {
    return Invalid(place + ": " + SentenceOf(problem));
  }
  return nodes;
}

Result<DecodedNode> DecodeNode(const PaddedText& text, const NodeRules& rules) {
  NodeReader reader(rules);
  Result<DecodedNode> node;
  const Status read = ReadObject(text, [&](object fields) -> Status {
    node = reader.Read(fields);
    return {};
  });
  const std::string place = "node " + reader.name();
  if (!read) return tl::unexpected(Error(read.error()).Within(place));
  if (!node) {
    const std::string& problem = node.error().message;
    return Invalid(place + ": " + problem.substr(problem.starts_with('.') ? 1 : 0));
  }
  return node;
}

}  // namespace berth::wire
