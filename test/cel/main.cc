// SPDX-License-Identifier: Apache-2.0
//
// berth-cel-verdicts: what Berth's evaluator says of expressions and devices, for the comparison
// with Kubernetes' own (test/e2e/cel). One JSON object a line, in and out:
//
//   {"expression": "...", "devices": [{"driver": "...", "allowMultipleAllocations": true,
//     "attributes": {"NAME": {"int": 1} | {"bools": [...]} | ...}, "capacity": {"NAME": "1Gi"}}]}
//   {"verdicts": ["true" | "false" | "failed" | "refused" | "unsupported", ...],
//    "costs": [...], "why": "of the last that is neither true nor false"}
#include <cstdint>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "cel/program.h"

namespace {

using berth::cel::Amount;
using berth::cel::AttributeValue;
using berth::cel::Device;
using berth::cel::Failure;
using berth::cel::FailureKind;
using berth::cel::Program;
using berth::cel::Version;
using Json = nlohmann::json;

AttributeValue Attribute(const Json& json) {
  const std::string kind = json.begin().key();
  const Json& value = json.begin().value();
  if (kind == "int") return value.get<std::int64_t>();
  if (kind == "bool") return value.get<bool>();
  if (kind == "string") return value.get<std::string>();
  if (kind == "version") return *Version::Parse(value.get<std::string>());
  if (kind == "ints") return value.get<std::vector<std::int64_t>>();
  if (kind == "bools") return value.get<std::vector<bool>>();
  if (kind == "strings") return value.get<std::vector<std::string>>();
  std::vector<Version> versions;
  for (const Json& text : value) versions.push_back(*Version::Parse(text.get<std::string>()));
  return versions;
}

Device DeviceOf(const Json& json) {
  Device device(json.at("driver").get<std::string>());
  device.SetAllowMultipleAllocations(json.value("allowMultipleAllocations", false));
  const Json attributes = json.value("attributes", Json::object());
  const Json capacity = json.value("capacity", Json::object());
  for (const auto& [name, value] : attributes.items()) {
    device.SetAttribute(name, Attribute(value));
  }
  for (const auto& [name, value] : capacity.items()) {
    device.SetCapacity(name, *Amount::Parse(value.get<std::string>()));
  }
  return device;
}

std::string_view Name(FailureKind kind) {
  switch (kind) {
    case FailureKind::kFailed:
      return "failed";
    case FailureKind::kRefused:
      return "refused";
    default:
      return "unsupported";
  }
}

Json Answer(const Json& question) {
  Json verdicts = Json::array(), costs = Json::array();
  std::string why;
  const auto failed = [&](const Failure& failure) {
    verdicts.push_back(Name(failure.kind));
    why = failure.message;
  };
  const auto program = Program::Compile(question.at("expression").get<std::string>());
  for (const Json& device : question.at("devices")) {
    berth::cel::Program::Effort effort;
    if (!program) {
      failed(program.error());
    } else if (const auto matches = program->Matches(DeviceOf(device), &effort); !matches) {
      failed(matches.error());
    } else {
      verdicts.push_back(*matches ? "true" : "false");
    }
    costs.push_back(effort.cost);
  }
  return {{"verdicts", verdicts}, {"costs", costs}, {"why", why}};
}

}  // namespace

int main() {
  std::ios::sync_with_stdio(false);
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << Answer(Json::parse(line)).dump(-1, ' ', false, Json::error_handler_t::replace)
              << '\n'
              << std::flush;
  }
  return 0;
}
