// SPDX-License-Identifier: Apache-2.0
#include "server/wire/json/selector_json.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "server/wire/json/object_reader.h"

namespace berth::wire {
namespace {

template <class T>
using Words = std::span<const std::pair<std::string_view, T>>;

template <class T>
std::optional<T> Named(Words<T> words, std::string_view name) {
  const auto found = std::ranges::find(words, name, &std::pair<std::string_view, T>::first);
  if (found == words.end()) return std::nullopt;
  return found->second;
}

constexpr std::array<std::pair<std::string_view, LabelOperator>, 6> kLabelOperators = {{
    {"In", LabelOperator::kIn},
    {"NotIn", LabelOperator::kNotIn},
    {"Exists", LabelOperator::kExists},
    {"DoesNotExist", LabelOperator::kDoesNotExist},
    {"Gt", LabelOperator::kGreater},
    {"Lt", LabelOperator::kLess},
}};
constexpr std::array<std::pair<std::string_view, TolerationOperator>, 5> kTolerationOperators = {{
    {"", TolerationOperator::kEqual},
    {"Equal", TolerationOperator::kEqual},
    {"Exists", TolerationOperator::kExists},
    {"Gt", TolerationOperator::kGreater},
    {"Lt", TolerationOperator::kLess},
}};

// Calls read(key, text) for every field of the object, all of which are texts.
template <class Read>
void ForEachText(object fields, Read read) {
  ForEachField(fields, [&read](std::string_view key, value content) {
    read(key, std::string_view(content.get_string()));
  });
}

Result<LabelRequirement> ReadRequirement(object expression) {
  LabelRequirement requirement;
  std::string op;
  ForEachField(expression, [&](std::string_view key, value content) {
    if (IsField(key, "key")) requirement.key = std::string_view(content.get_string());
    if (IsField(key, "operator")) op = std::string_view(content.get_string());
    if (IsField(key, "values")) {
      ForEachItem(content.get_array(), [&requirement](value item) {
        requirement.values.emplace_back(std::string_view(item.get_string()));
      });
    }
  });
  const auto named = Named<LabelOperator>(kLabelOperators, op);
  if (!named) {
    return Invalid(".operator: want In, NotIn, Exists, DoesNotExist, Gt or Lt, got \"" + op + "\"");
  }
  requirement.op = *named;
  if (requirement.op == LabelOperator::kIn || requirement.op == LabelOperator::kNotIn) {
    std::ranges::sort(requirement.values);
  }
  return requirement;
}

Status ReadRequirements(array expressions, std::string_view field, LabelSelector& selector) {
  for (std::size_t i = 0; auto item : expressions) {
    const std::string place = "." + std::string(field) + "[" + std::to_string(i++) + "]";
    BERTH_TRY(LabelRequirement requirement, Within(ReadRequirement(item.get_object()), place));
    selector.push_back(std::move(requirement));
  }
  return {};
}

// Reads fields until one has an Error; that is what comes back.
template <class Read>
Status FirstProblem(object fields, Read read) {
  Status first;
  ForEachField(fields, [&](std::string_view key, value content) {
    if (!first) return;
    first = read(key, content);
  });
  return first;
}

Result<NodeSelectorTerm> ReadTerm(object term) {
  NodeSelectorTerm read;
  BERTH_TRY_STATUS(FirstProblem(term, [&read](std::string_view key, value content) -> Status {
    if (IsField(key, "matchExpressions")) {
      return ReadRequirements(content.get_array(), "matchExpressions", read.labels);
    }
    if (IsField(key, "matchFields")) {
      return ReadRequirements(content.get_array(), "matchFields", read.fields);
    }
    return {};
  }));
  return read;
}

Status ReadRequired(object required, NodeConstraints& constraints) {
  constraints.either.emplace();
  return FirstProblem(required, [&](std::string_view key, value content) -> Status {
    if (!IsField(key, "nodeSelectorTerms")) return {};
    for (auto item : content.get_array()) {
      BERTH_TRY(NodeSelectorTerm term, ReadTerm(item.get_object()));
      constraints.either->push_back(std::move(term));
    }
    return {};
  });
}

}  // namespace

Labels ReadLabels(object labels) {
  Labels read;
  ForEachField(labels, [&read](std::string_view key, value content) {
    std::string_view text;
    if (content.type() == simdjson::ondemand::json_type::number) {
      text = ScalarText(content);
    } else if (content.get_string().get(text)) {
      return;  // Kubernetes writes none: it costs that label
    }
    read.emplace_back(key, text);
  });
  std::ranges::stable_sort(read, {}, &Labels::value_type::first);
  const auto same_key = [](const auto& a, const auto& b) { return a.first == b.first; };
  read.erase(std::unique(read.begin(), read.end(), same_key), read.end());
  read.shrink_to_fit();
  return read;
}

LabelSelector ReadNodeSelector(object selector) {
  LabelSelector read;
  ForEachText(selector, [&read](std::string_view key, std::string_view text) {
    read.push_back({std::string(key), LabelOperator::kIn, {std::string(text)}});
  });
  return read;
}

Result<LabelSelector> ReadLabelSelector(object selector) {
  LabelSelector read;
  BERTH_TRY_STATUS(FirstProblem(selector, [&read](std::string_view key, value content) -> Status {
    if (IsField(key, "matchLabels")) {
      for (LabelRequirement& one : ReadNodeSelector(content.get_object())) {
        read.push_back(std::move(one));
      }
    }
    if (IsField(key, "matchExpressions")) {
      return ReadRequirements(content.get_array(), "matchExpressions", read);
    }
    return {};
  }));
  return read;
}

Status ReadAffinity(object affinity, NodeConstraints& constraints, OwnToScheduler& others) {
  return FirstProblem(affinity, [&](std::string_view key, value content) -> Status {
    const bool of_nodes = IsField(key, "nodeAffinity"), with = IsField(key, "podAffinity");
    if (!of_nodes && !with && !IsField(key, "podAntiAffinity")) return {};
    return FirstProblem(content.get_object(), [&](std::string_view name, value part) -> Status {
      if (!IsField(name, "requiredDuringSchedulingIgnoredDuringExecution")) return {};
      if (of_nodes) return ReadRequired(part.get_object(), constraints);
      array terms = part.get_array();
      (with ? others.minds_others : others.keeps_apart) |= !terms.is_empty();
      return {};
    });
  });
}

std::vector<Toleration> ReadTolerations(array tolerations) {
  std::vector<Toleration> read;
  ForEachItem(tolerations, [&read](value item) {
    Toleration toleration;
    std::string op, effect;
    ForEachField(item.get_object(), [&](std::string_view key, value content) {
      if (IsField(key, "key")) toleration.key = std::string_view(content.get_string());
      if (IsField(key, "value")) toleration.value = std::string_view(content.get_string());
      if (IsField(key, "operator")) op = std::string_view(content.get_string());
      if (IsField(key, "effect")) effect = std::string_view(content.get_string());
    });
    const auto named = Named<TolerationOperator>(kTolerationOperators, op);
    toleration.effect = TaintEffectNamed(effect);
    if (!named || (!effect.empty() && !toleration.effect)) return;  // tolerates nothing of ours
    toleration.op = *named;
    read.push_back(std::move(toleration));
  });
  return read;
}

std::vector<Taint> ReadTaints(array taints) {
  std::vector<Taint> read;
  ForEachItem(taints, [&read](value item) {
    Taint taint;
    std::string effect;
    ForEachText(item.get_object(), [&](std::string_view key, std::string_view text) {
      if (IsField(key, "key")) taint.key = text;
      if (IsField(key, "value")) taint.value = text;
      if (IsField(key, "effect")) effect = text;
    });
    const auto named = TaintEffectNamed(effect);
    if (!named) return;
    taint.effect = *named;
    read.push_back(std::move(taint));
  });
  return read;
}

}  // namespace berth::wire
