// SPDX-License-Identifier: Apache-2.0
#include "server/wire/file/value_json.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>

#include "cluster/node/describe_node.h"
#include "server/wire/pod/given_json.h"

namespace berth::wire {
namespace {

constexpr std::array<std::string_view, 3> kSharingWords = {"", "time-slicing", "mps"};
constexpr std::array<std::string_view, kMobilities> kMobilityWords = {
    "", "moves", "no-controller", "comes-back", "do-not-disrupt", "not-safe-to-evict", "host-path"};
constexpr std::array<std::string_view, 6> kLabelWords = {"In",           "NotIn", "Exists",
                                                         "DoesNotExist", "Gt",    "Lt"};
constexpr std::array<std::string_view, 4> kTolerationWords = {"Equal", "Exists", "Gt", "Lt"};

using WordList = std::span<const std::string_view>;
constexpr WordList WordsOf(TaintEffect) { return kTaintEffectWords; }
constexpr WordList WordsOf(LabelOperator) { return kLabelWords; }
constexpr WordList WordsOf(TolerationOperator) { return kTolerationWords; }
constexpr WordList WordsOf(Mobility) { return kMobilityWords; }
constexpr WordList WordsOf(GpuSharing) { return kSharingWords; }

template <class T>
concept HasWords = requires(T value) {
  WordsOf(value);
};

// The JSON of a member, by its type.
class MemberWriter {
 public:
  explicit MemberWriter(std::int64_t most) : most_(most) {}

  // Texts, words, flags and numbers.
  template <class T>
  [[nodiscard]] Json JsonOf(const T& value) const {
    if constexpr (Described<const T>) {
      return ObjectOf(value);
    } else if constexpr (HasWords<T>) {
      return WordsOf(value)[static_cast<std::size_t>(value)];
    } else {
      return value;
    }
  }
  // An ask of a pod, a mean of asks, and what a node says may be more than can be read.
  [[nodiscard]] Json JsonOf(std::int64_t amount) const {
    return std::clamp<std::int64_t>(amount, 0, most_);
  }
  [[nodiscard]] Json JsonOf(const std::optional<std::int64_t>& amount) const {
    return JsonOf(*amount);
  }
  template <class T>
  [[nodiscard]] Json JsonOf(const std::vector<T>& list) const {
    return ListOf(list, [this](const T& item) { return JsonOf(item); });
  }
  template <class T>
  [[nodiscard]] Json JsonOf(const std::shared_ptr<const T>& value) const {
    return JsonOf(*value);
  }
  [[nodiscard]] Json JsonOf(const Labels& labels) const {
    Json json = Json::object();
    for (const auto& [key, value] : labels) json[key] = value;
    return json;
  }
  [[nodiscard]] Json JsonOf(const OtherResources& others) const {
    Json json = Json::object();
    for (const OtherResource& other : others) json[other.name] = JsonOf(other.amount);
    return json;
  }
  [[nodiscard]] Json JsonOf(const GpuAsk& ask) const {
    if (const auto* mig = std::get_if<MigSlices>(&ask)) return {{"mig", MigWantsJson(*mig)}};
    return std::visit([](const auto& kind) { return ObjectOf(kind); }, ask);
  }
  [[nodiscard]] Json JsonOf(const MigGrant& grant) const { return MigGrantJson(grant); }
  [[nodiscard]] Json JsonOf(const Gang& gang) const { return gang.id.text(); }
  [[nodiscard]] Json JsonOf(Isolation isolation) const { return isolation == Isolation::kMemory; }
  template <OneOf<TaintEffect, std::vector<NodeSelectorTerm>> T>
  [[nodiscard]] Json JsonOf(const std::optional<T>& value) const {
    return JsonOf(*value);
  }
  [[nodiscard]] Json JsonOf(const VersionNeeds& needs) const {
    return ListOf(needs.least, [](const auto& least) { return least ? TextOf(*least) : ""; });
  }
  [[nodiscard]] Json JsonOf(TopologyPolicy policy) const { return berth::NameOf(policy); }

 private:
  const std::int64_t most_;
};

Status ReadLabelsOf(const Json& json, const std::string& path, Labels& labels) {
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string()) return Invalid(path + "." + key + ": want a text");
    labels.emplace_back(key, value);
  }
  std::ranges::sort(labels);
  return {};
}

Status ReadOthersOf(const Json& json, const std::string& path, OtherResources& others) {
  for (const auto& [name, amount] : json.items()) {
    std::int64_t* const read = AmountOf(others, name);
    if (read == nullptr) {
      return Invalid(path + ": want at most " + std::to_string(kMostOtherResources) +
                     " resources with names of at most " + std::to_string(kMostOtherNameBytes) +
                     " bytes");
    }
    Fields fields(json, path);
    fields.Integer(name.c_str(), 0, kMostAmount, *read);
    BERTH_TRY_STATUS(fields.FinishForeign());
  }
  return {};
}

Status ReadAsk(const Json& json, const std::string& path, GpuAsk& ask) {
  Fields fields(json, path);
  WholeGpus whole{0};
  GpuShare share;
  MigSlices mig;
  ReadMembers(fields, whole);
  ReadMembers(fields, share);
  fields.List("mig", [&mig](const Json& want, const std::string& place) {
    return ReadMigWant(want, place, mig);
  });
  if (!mig.wants.empty()) {
    ask = std::move(mig);
  } else if (whole.count > 0) {
    ask = whole;
  } else if (share.milli > 0 || share.memory_mib > 0 || share.memory_milli > 0) {
    ask = share;
  }
  return fields.Finish();
}

Status ReadGrant(const Json& json, const std::string& path, std::vector<DeviceGrant>& grants) {
  const int before = grants.empty() ? -1 : grants.back().gpu;
  BERTH_TRY_STATUS(ReadItem<DeviceGrant>(json, path, grants));
  DeviceGrant& grant = grants.back();
  if (!grant.uuid.empty()) {
    grant.gpu = DeviceGrant::kUnknown;
  } else if (grants.size() > 1 && grant.gpu <= before) {
    return Invalid(path + ".gpu: want each GPU once and in ascending order, got " +
                   std::to_string(grant.gpu));
  }
  return {};
}

// Takes a member out of an object, by its type.
class MemberReader {
 public:
  MemberReader(Fields& fields, const char* name, std::int64_t low, std::int64_t high)
      : fields_(fields), name_(name), low_(low), high_(high) {}

  void Read(std::string& text) { fields_.Text(name_, text); }
  void Read(bool& flag) { fields_.Bool(name_, flag); }
  void Read(int& number) { fields_.Int(name_, low_, high_, number); }
  void Read(std::int64_t& amount) { fields_.Integer(name_, low_, high_, amount); }
  void Read(double& number) {
    fields_.Number(name_, static_cast<double>(low_), static_cast<double>(high_), number);
  }
  void Read(std::optional<std::int64_t>& amount) {
    std::int64_t said = -1;
    Read(said);
    if (said >= 0) amount = said;
  }
  void Read(Isolation& isolation) {
    bool keeps_memory = false;
    Read(keeps_memory);
    if (keeps_memory) isolation = Isolation::kMemory;
  }
  void Read(HasWords auto& value) { fields_.Word(name_, WordsOf(value), value); }
  void Read(std::optional<TaintEffect>& effect) {
    if (fields_.Peek(name_) != nullptr) Read(effect.emplace());
  }
  void Read(std::optional<std::vector<NodeSelectorTerm>>& either) {
    if (fields_.Peek(name_) != nullptr) List(either.emplace(), ReadItem<NodeSelectorTerm>);
  }
  template <Described T>
  void Read(std::vector<T>& values) {
    List(values, ReadItem<T>);
  }
  void Read(VersionNeeds& needs) {
    std::vector<std::string> texts;
    Read(texts);
    for (std::size_t i = 0; i < std::min(texts.size(), needs.least.size()); ++i) {
      if (const auto version = ParseVersion(texts[i])) needs.least[i] = *version;
    }
  }
  void Read(std::shared_ptr<const NodeConstraints>& constraints) {
    if (fields_.Peek(name_) == nullptr) return;
    auto read = std::make_shared<NodeConstraints>();
    Object(*read, ReadValue<NodeConstraints>);
    constraints = std::move(read);
  }
  void Read(Gang& gang) {
    std::string text;
    Read(text);
    gang.id = GangId::Of(text);
  }
  void Read(GpuAsk& ask) { Object(ask, ReadAsk); }
  void Read(Labels& labels) { Object(labels, ReadLabelsOf); }
  void Read(std::shared_ptr<const Labels>& labels) {
    if (fields_.Peek(name_) == nullptr) return;
    auto read = std::make_shared<Labels>();
    Read(*read);
    labels = std::move(read);
  }
  void Read(TopologyManager& manager) { Object(manager, ReadValue<TopologyManager>); }
  void Read(TopologyPolicy& policy) {
    const std::array<std::string_view, 4> kPolicies = {
        berth::NameOf(TopologyPolicy::kNone), berth::NameOf(TopologyPolicy::kBestEffort),
        berth::NameOf(TopologyPolicy::kRestricted), berth::NameOf(TopologyPolicy::kSingleNumaNode)};
    fields_.Word(name_, kPolicies, policy);
  }
  void Read(OtherResources& others) { Object(others, ReadOthersOf); }
  void Read(std::shared_ptr<const OtherResources>& others) {
    auto read = std::make_shared<OtherResources>();
    Read(*read);
    if (!read->empty()) others = std::move(read);
  }
  void Read(GpuPlaces& places) {
    Object(places, [](const Json& json, const std::string& path, GpuPlaces& read) {
      Fields fields(json, path);
      int taken = 0;  // follows from the pods
      fields.Int("taken", std::numeric_limits<int>::min(), std::numeric_limits<int>::max(), taken);
      ReadMembers(fields, read);
      return fields.Finish();
    });
  }
  void Read(std::vector<std::string>& texts) {
    List(texts, [](const Json& text, const std::string& path, std::vector<std::string>& to) {
      if (!text.is_string()) return Status(Invalid(path + ": want a text"));
      to.push_back(text);
      return Status();
    });
  }
  void Read(std::vector<GpuSpec>& gpus) {
    const Json* const json = fields_.Peek(name_);
    if (json == nullptr || !json->is_number()) return List(gpus, ReadItem<GpuSpec>);
    int count = 0;
    fields_.Int(name_, 0, kMaxGpusPerNode, count);
    gpus.resize(static_cast<std::size_t>(count));
  }
  void Read(std::vector<GpuAsk>& asks) {
    List(asks, [](const Json& json, const std::string& path, std::vector<GpuAsk>& to) {
      return ReadAsk(json, path, to.emplace_back());
    });
  }
  void Read(RefusedAsks& asks) {
    std::vector<RefusedAsk> read;
    List(read, [](const Json& json, const std::string& path, std::vector<RefusedAsk>& to) {
      if (to.size() < kMostRefusedAsks) return ReadItem<RefusedAsk>(json, path, to);
      return Status(Invalid(path + ": want at most " + std::to_string(kMostRefusedAsks) +
                            " refused asks, got more"));
    });
    if (!read.empty()) asks = std::make_shared<const std::vector<RefusedAsk>>(std::move(read));
  }
  void Read(std::vector<int>& numbers) {
    List(numbers, [this](const Json& number, const std::string& path, std::vector<int>& to) {
      const bool is_in_range = number.is_number_integer() && number >= low_ && number <= high_;
      if (!is_in_range) {
        return Status(Invalid(path + ": want a whole number from " + std::to_string(low_) + " to " +
                              std::to_string(high_)));
      }
      to.push_back(number);
      return Status();
    });
  }
  void Read(std::vector<DeviceGrant>& grants) { List(grants, ReadGrant); }
  void Read(std::vector<MigGrant>& grants) { List(grants, ReadMigGrant); }

 private:
  template <class T, class ReadOne>
  void Object(T& value, ReadOne read) {
    fields_.Object(
        name_, [&](const Json& json, const std::string& path) { return read(json, path, value); });
  }
  template <class T, class ReadOne>
  void List(std::vector<T>& list, ReadOne read) {
    fields_.List(name_,
                 [&](const Json& json, const std::string& path) { return read(json, path, list); });
  }

  Fields& fields_;
  const char* const name_;
  const std::int64_t low_, high_;
};

}  // namespace

template <class T>
void AddMembers(const T& value, Part part, Json& json) {
  static const T kNew{};
  ForEachMemberOf(value, kNew, [&](const auto& member, const auto& unset) {
    constexpr Written written = std::remove_cvref_t<decltype(member)>::written;
    if constexpr (written != Written::kNever) {
      if ((written == Written::kFirst) != (part == Part::kFront)) return;
      if constexpr (written == Written::kIfSet) {
        if (member.value == unset.value) return;
      }
      if constexpr (std::is_same_v<decltype(member.value), const int&>) {
        if (member.value < member.key.low) return;
      }
      json[member.key.name] = MemberWriter(member.key.high).JsonOf(member.value);
    }
  });
}

template <class T>
void ReadMembers(Fields& fields, T& value) {
  ForEachMember(value, [&fields](const auto& member) {
    if constexpr (std::remove_cvref_t<decltype(member)>::written != Written::kNever) {
      MemberReader(fields, member.key.name, member.key.low, member.key.high).Read(member.value);
    }
  });
}

template void AddMembers(const PodId&, Part, Json&);
template void AddMembers(const RequestShape&, Part, Json&);
template void AddMembers(const PodRequest&, Part, Json&);
template void AddMembers(const Placement&, Part, Json&);
template void AddMembers(const NodeSpec&, Part, Json&);
template void AddMembers(const GpuPlaces&, Part, Json&);
template void AddMembers(const Taint&, Part, Json&);
template void AddMembers(const ClaimedGpu&, Part, Json&);
template void ReadMembers(Fields&, PodId&);
template void ReadMembers(Fields&, RequestShape&);
template void ReadMembers(Fields&, PodRequest&);
template void ReadMembers(Fields&, Placement&);
template void ReadMembers(Fields&, NodeSpec&);
template void ReadMembers(Fields&, Taint&);
template void ReadMembers(Fields&, ClaimedGpu&);

}  // namespace berth::wire
