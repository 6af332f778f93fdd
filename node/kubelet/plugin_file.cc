// SPDX-License-Identifier: Apache-2.0
#include "node/kubelet/plugin_file.h"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <optional>
#include <sstream>
#include <system_error>

namespace berth::node {

namespace {

constexpr std::size_t kMostFileBytes = std::size_t{512} << 10;
constexpr std::string_view kDirect = "direct=";
constexpr std::string_view kSick = "sick ";

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

constexpr std::size_t kMostDomainBytes = 253;
constexpr std::size_t kMostNameBytes = 63;
constexpr std::size_t kMostEndpointBytes = 63;  // a socket's path has at most 107 in all

bool IsLetterOrDigit(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

bool IsName(std::string_view text, std::size_t most, std::string_view between) {
  return !text.empty() && text.size() <= most && IsLetterOrDigit(text.front()) &&
         IsLetterOrDigit(text.back()) && std::ranges::all_of(text, [between](char c) {
           return IsLetterOrDigit(c) || between.find(c) != std::string_view::npos;
         });
}

std::string Quoted(std::string_view text) {
  constexpr std::size_t kMost = 100;
  return "\"" + std::string(text.substr(0, kMost)) + (text.size() > kMost ? "..." : "") + "\"";
}

}  // namespace

std::vector<PluginAddress> ParsePlugins(std::string_view text) {
  std::istringstream lines{std::string(text)};
  std::vector<PluginAddress> plugins;
  for (std::string line; std::getline(lines, line) && plugins.size() < kMostResources;) {
    if (!plugins.empty() && line.starts_with(kSick)) {
      const std::string of = std::string(kSick) + plugins.back().resource + " ";
      if (line.starts_with(of)) plugins.back().sick = line.substr(of.size());
    } else if (std::optional<PluginAddress> plugin = ParsePlugin(line)) {
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
    if (!plugin.sick.empty()) {
      text += std::string(kSick) + plugin.resource + " " + plugin.sick + "\n";
    }
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

Status CheckResourceName(std::string_view name) {
  const std::size_t slash = name.find('/');
  if (slash == std::string_view::npos || !IsName(name.substr(0, slash), kMostDomainBytes, "-.") ||
      !IsName(name.substr(slash + 1), kMostNameBytes, "-._")) {
    return Invalid("resource_name: want a domain, a slash and a name, got " + Quoted(name));
  }
  return {};
}

Status CheckEndpoint(std::string_view name) {
  if (!IsName(name, kMostEndpointBytes, "-._")) {
    return Invalid("endpoint: want the name of a socket, at most 63 bytes, got " + Quoted(name));
  }
  if (name == "kubelet.sock" || name.starts_with("berth-")) {
    return Invalid("endpoint: want a name that neither the kubelet nor berth-node uses, got " +
                   Quoted(name));
  }
  return {};
}

std::string EndpointFor(std::string_view resource, unsigned number) {
  std::string name = "berth-" + std::string(resource);
  std::ranges::replace(name, '/', '-');
  std::ranges::replace(name, '.', '-');
  constexpr std::size_t kMost = 56;
  const std::string counted = number == 0 ? "" : "-" + std::to_string(number);
  return name.substr(0, kMost) + counted + ".sock";
}

std::string_view WithoutReplica(std::string_view device) {
  return device.substr(0, device.find("::"));
}

}  // namespace berth::node
