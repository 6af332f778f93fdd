// SPDX-License-Identifier: Apache-2.0
#include "server/commands/config_command.h"

#include <utility>

#include "base/file.h"
#include "config/load.h"

namespace berth {
namespace {

Result<ConfigText> ConfigIn(const std::string& file) {
  std::string text;
  if (file == "-") {
    text = ReadStandardInput();
  } else {
    BERTH_TRY(text, ReadFile(file));
  }
  return ConfigInside(std::move(text), file);
}

}  // namespace

Result<ConfigFindings> CheckConfigFile(const std::string& file) {
  BERTH_TRY(const ConfigText config, ConfigIn(file));
  return CheckConfig(config.text, config.origin);
}

Result<Config> ConfigForPrint(const std::string& file) {
  BERTH_TRY(const ConfigText config, ConfigIn(file));
  return LoadConfig(config.text, config.origin);
}

}  // namespace berth
