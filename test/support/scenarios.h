// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "config/parse_yaml.h"
#include "test/support/build_paths.h"
#include "test/support/read_text.h"
#include "test/support/wire_fixture.h"

namespace berth::test {

// The documents of test/scenarios/NAME.yaml, whose head says what is in it.
inline std::vector<Json> Scenarios(const std::string& name) {
  const std::string path = SourceDir() + "/test/scenarios/" + name + ".yaml";
  const auto documents = JsonDocuments(ReadText(path), name);
  if (!documents) ADD_FAILURE() << documents.error().message;
  std::vector<Json> scenarios;
  for (const std::string& document : documents.value_or(std::vector<std::string>())) {
    scenarios.push_back(Json::parse(document));
  }
  return scenarios;
}

}  // namespace berth::test
