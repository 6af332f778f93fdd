// SPDX-License-Identifier: Apache-2.0
#include "node/kubelet/plugin_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <optional>
#include <sstream>
#include <system_error>

#include "node/kubelet/plugin_names.h"

namespace berth::node {
namespace {

constexpr std::size_t kMostFileBytes = std::size_t{64} << 10;
constexpr std::string_view kDirect = "direct=";

// The plugin's own socket, in the kubelet's folder or in ours.
bool IsEndpointPath(std::string_view endpoint) {
  constexpr std::string_view kOurFolder = "berth/";
  if (endpoint.starts_with(kOurFolder)) endpoint.remove_prefix(kOurFolder.size());
  return CheckEndpoint(endpoint).has_value();
}

std::optional<PluginAddress> ParsePlugin(const std::string& line) {
  std::istringstream words(line);
  PluginAddress plugin;
  std::string pre_start, preferred, direct, more;
  words >> plugin.resource >> plugin.endpoint >> pre_start >> preferred >> direct;
  if (words >> more || (!direct.empty() && !direct.starts_with(kDirect))) return std::nullopt;
  if (!direct.empty()) plugin.direct = direct.substr(kDirect.size());
  if (!CheckResourceName(plugin.resource) || !IsEndpointPath(plugin.endpoint)) return std::nullopt;
  plugin.options.pre_start = pre_start == "pre-start=1";
  plugin.options.preferred_allocation = preferred == "preferred=1";
  return plugin;
}

Error NotWritten(const std::string& path) {
  return {Errc::kUnavailable, path + ": " + std::generic_category().message(errno)};
}

}  // namespace

std::vector<PluginAddress> ParsePlugins(std::string_view text) {
  std::istringstream lines{std::string(text)};
  std::vector<PluginAddress> plugins;
  for (std::string line; std::getline(lines, line) && plugins.size() < kMostResources;) {
    if (std::optional<PluginAddress> plugin = ParsePlugin(line)) {
      plugins.push_back(*std::move(plugin));
    }
  }
  return plugins;
}

std::string PluginsText(const std::vector<PluginAddress>& plugins) {
  std::string text;
  for (const PluginAddress& plugin : plugins) {
    text += plugin.resource + " " + plugin.endpoint +
            " pre-start=" + (plugin.options.pre_start ? "1" : "0") +
            " preferred=" + (plugin.options.preferred_allocation ? "1" : "0");
    if (!plugin.direct.empty()) text += " " + std::string(kDirect) + plugin.direct;
    text += "\n";
  }
  return text;
}

std::vector<PluginAddress> ReadPlugins(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMostFileBytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return ParsePlugins(text);
}

Status WritePlugins(const std::string& path, const std::vector<PluginAddress>& plugins) {
  const std::string next = path + ".new";
  const std::string text = PluginsText(plugins);
  const int file = open(next.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return tl::unexpected(NotWritten(next));
  const bool written = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(file);
  if (!written) return tl::unexpected(NotWritten(next));
  if (std::rename(next.c_str(), path.c_str()) != 0) return tl::unexpected(NotWritten(path));
  return {};
}

}  // namespace berth::node
