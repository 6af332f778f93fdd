// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/conform/requests.h"

#include <zlib.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/check.h"

namespace berth::conform {
namespace {

using Ordered = nlohmann::ordered_json;

// More nodes than that are padded to 8 kB each where they are sent in full.
constexpr std::size_t kFewNodes = 100, kPadding = 7'000;

std::vector<std::string> NodeNames(const ConformOptions& options, std::size_t count) {
  std::vector<std::string> names = options.nodes;
  names.resize(std::min(names.size(), count));
  while (names.size() < count) names.push_back("berth-conform-" + std::to_string(names.size()));
  return names;
}

// As kube-scheduler writes it.
Ordered NodeJson(const ConformOptions& options, const std::string& name, std::size_t padding) {
  const Ordered amounts = {
      {"cpu", "64"}, {"memory", "263856188Ki"}, {"pods", "110"}, {options.resource, "8"}};
  Ordered metadata = {{"name", name},
                      {"uid", name},
                      {"resourceVersion", "220"},
                      {"creationTimestamp", "2026-01-01T00:00:00Z"},
                      {"labels", {{"kubernetes.io/hostname", name}}}};
  if (padding > 0) metadata["annotations"] = {{"example.com/padding", std::string(padding, 'x')}};
  const Ordered ready = {{"type", "Ready"},
                         {"status", "True"},
                         {"lastHeartbeatTime", "2026-01-01T00:00:00Z"},
                         {"lastTransitionTime", "2026-01-01T00:00:00Z"},
                         {"reason", "KubeletReady"},
                         {"message", "kubelet is posting ready status"}};
  Ordered info;
  for (const char* key :
       {"machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion",
        "kubeletVersion", "kubeProxyVersion", "operatingSystem", "architecture"}) {
    info[key] = "";
  }
  return {{"metadata", metadata},
          {"spec", {{"podCIDR", "10.0.0.0/24"}}},
          {"status",
           {{"capacity", amounts},
            {"allocatable", amounts},
            {"conditions", Ordered::array({ready})},
            {"daemonEndpoints", {{"kubeletEndpoint", {{"Port", 10250}}}}},
            {"nodeInfo", info}}}};
}

// Of a case: what an extender remembers of a pod does not reach the next one.
Ordered PodJson(const ConformOptions& options, int number, bool gpu) {
  Ordered amounts = {{"cpu", "100m"}, {"memory", "64Mi"}};
  if (gpu) amounts[options.resource] = "1";
  const Ordered container = {{"name", "main"},
                             {"image", "registry.invalid/main:1"},
                             {"resources", {{"limits", amounts}, {"requests", amounts}}}};
  const std::string name = (gpu ? "berth-conform-gpu-" : "berth-conform-") + std::to_string(number);
  return {{"metadata", {{"name", name}, {"namespace", "default"}, {"uid", name}}},
          {"spec", {{"schedulerName", "default-scheduler"}, {"containers", {container}}}},
          {"status", {{"phase", "Pending"}}}};
}

Ordered ItemsJson(const ConformOptions& options, const std::vector<std::string>& names) {
  Ordered items = Ordered::array();
  const std::size_t padding = names.size() > kFewNodes ? kPadding : 0;
  for (const std::string& name : names) items.push_back(NodeJson(options, name, padding));
  return items;
}

std::string OrdinaryBody(char verb, const std::vector<std::string>& names) {
  if (verb == 'f' || verb == 'p') return R"({"Pod":$POD,$LIST})";
  if (verb == 'b') {
    return R"({"PodName":"berth-conform-bind","PodNamespace":"default","PodUID":"berth-conform-57",)"
           R"("Node":$NODE})";
  }
  Ordered victims;
  for (const std::string& name : names) {
    const Ordered pod = {{"UID", "victim-" + name}};
    victims[name] = {{"Pods", {pod}}, {"NumPDBViolations", 0}};
  }
  return R"({"Pod":$GPU,"NodeNameToVictims":null,"NodeNameToMetaVictims":)" + victims.dump() + "}";
}

std::string Gzip(const std::string& text) {
  z_stream stream{};
  constexpr int kGzipWindow = 15 + 16;
  BERTH_CHECK(deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) ==
              Z_OK);
  std::string packed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  BERTH_CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string Chunked(const std::string& body) {
  constexpr std::size_t kFirst = 5;
  const auto chunk = [](std::string_view part) {
    char size[32];
    std::snprintf(size, sizeof size, "%zx\r\n", part.size());
    return size + std::string(part) + "\r\n";
  };
  return chunk(body.substr(0, kFirst)) + chunk(body.substr(kFirst)) + "0\r\n\r\n";
}

}  // namespace

std::string BodyOf(const ConformOptions& options, const Case& tried, char verb) {
  const std::vector<std::string> names = NodeNames(options, tried.nodes);
  const auto list = [&] {
    return options.node_bodies ? R"("Nodes":{"metadata":{},"items":$ITEMS},"NodeNames":null)"
                               : R"("Nodes":null,"NodeNames":$NAMES)";
  };
  const std::pair<std::string_view, std::function<std::string()>> values[] = {
      {"$ARGS", [&] { return OrdinaryBody(verb, names); }},
      {"$POD", [&] { return PodJson(options, tried.number, false).dump(); }},
      {"$GPU", [&] { return PodJson(options, tried.number, true).dump(); }},
      {"$LIST", list},
      {"$NAMES", [&] { return Ordered(names).dump(); }},
      {"$ITEMS", [&] { return ItemsJson(options, names).dump(); }},
      {"$NODE", [&] { return Ordered(names.front()).dump(); }},
      {"$RESOURCE", [&] { return options.resource; }},
      {"$LONG", [] { return std::string(253, 'n'); }},
      {"$DEEP", [] { return std::string(600, '[') + std::string(600, ']'); }},
      {"$MB", [] { return std::string(1'000'000, 'm'); }},
  };
  std::string body = tried.body;
  for (const auto& [token, value] : values) {
    std::size_t at = body.find(token);
    if (at == std::string::npos) continue;
    const std::string text = value();
    for (; at != std::string::npos; at = body.find(token, at + text.size())) {
      body.replace(at, token.size(), text);
    }
  }
  return body;
}

std::string BytesOf(Form form, const ExtenderUrl& url, const std::string& verb,
                    const std::string& body) {
  std::string method = "POST", path = url.prefix + "/" + verb, payload = body;
  std::string type = "Content-Type: application/json\r\n", fields;
  switch (form) {
    case Form::kDoubleSlash:
      path = url.prefix + "//" + verb;
      break;
    case Form::kTrailingSlash:
      path += "/";
      break;
    case Form::kQuery:
      path += "?timeout=5s";
      break;
    case Form::kUnknownPath:
      path += "-berth-conform";
      break;
    case Form::kGet:
      method = "GET";
      break;
    case Form::kPut:
      method = "PUT";
      break;
    case Form::kHead:
      method = "HEAD";
      break;
    case Form::kNoType:
      type = "";
      break;
    case Form::kOtherType:
      type = "Content-Type: text/plain\r\n";
      break;
    case Form::kExpect:
      fields = "Expect: 100-continue\r\n";
      break;
    case Form::kAcceptGzip:
      fields = "Accept-Encoding: gzip\r\n";
      break;
    case Form::kGzip:
      fields = "Content-Encoding: gzip\r\n";
      payload = Gzip(body);
      break;
    case Form::kChunked:
      payload = Chunked(body);
      break;
    case Form::kTwoLengths:
      fields = "Transfer-Encoding: chunked\r\n";
      payload = Chunked(body);
      break;
    default:
      break;
  }
  fields += form == Form::kChunked ? "Transfer-Encoding: chunked\r\n"
                                   : "Content-Length: " + std::to_string(payload.size()) + "\r\n";
  std::string bytes = method + " " + path + " HTTP/1.1\r\nHost: " + url.host + ":" + url.port +
                      "\r\nUser-Agent: berth-replay\r\n" + type + fields + "\r\n";
  return bytes + payload;
}

}  // namespace berth::conform
