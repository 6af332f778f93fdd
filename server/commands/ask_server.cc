// SPDX-License-Identifier: Apache-2.0
#include "server/commands/ask_server.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string_view>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/text.h"
#include "server/http/ask.h"
#include "server/wire/json/strict_json.h"

namespace berth {
namespace {

// HOST:PORT of the address.
Result<std::string> AddressOf(const std::string& server) {
  std::string_view address = server;
  constexpr std::string_view kHttp = "http://";
  if (address.starts_with(kHttp)) address.remove_prefix(kHttp.size());
  while (address.ends_with('/')) address.remove_suffix(1);
  if (address.find('/') != std::string_view::npos || address.rfind(':') == std::string_view::npos) {
    return Invalid("--server: want http://HOST:PORT, got \"" + server +
                   "\"; with mutual TLS, use the address of server.debugListen");
  }
  return std::string(address);
}

// What a server says of an error: {"error":"TEXT"}, or a Status of the API server before it.
std::string ErrorIn(int status, const std::string& body) {
  const wire::Json json = wire::Json::parse(body, nullptr, false);
  if (json.is_object() && json.contains("error") && json["error"].is_string()) {
    return json["error"].get<std::string>();
  }
  if (json.is_object() && json.contains("message") && json["message"].is_string()) {
    return json["message"].get<std::string>();
  }
  // kubectl says in plain text what it could not do.
  const std::string_view line = std::string_view(body).substr(0, body.find('\n'));
  const bool is_text = !line.empty() && line.front() != '<' &&
                       std::ranges::all_of(line, [](unsigned char c) { return c >= ' '; });
  return json.is_discarded() && is_text ? Shortened(line, 300) : "status " + std::to_string(status);
}

Errc CodeOf(int status) {
  if (status == 404) return Errc::kNotFound;
  return status == 400 || status == 413 ? Errc::kInvalidArgument : Errc::kUnavailable;
}

// What keeps people from Berth on the way through the API server, and what to do; empty: not known.
std::string AdviceOn(int status, std::string_view text) {
  const auto has = [text](std::string_view part) { return text.find(part) != text.npos; };
  if (status == 403 && has("services/proxy")) {
    return "ask an administrator for the group berth-viewers (manifests/components/viewers)";
  }
  if (status == 404 && has("services \"") && has("not found")) {
    return "is Berth installed in that cluster? Another namespace or Service: --service "
           "NAMESPACE/NAME";
  }
  if (has("no endpoints available")) {
    return "no pod of Berth leads there: look at kubectl get pods -A -l "
           "app.kubernetes.io/name=berth; another namespace or Service: --service NAMESPACE/NAME";
  }
  if (has("error trying to reach service")) {
    return "a NetworkPolicy may keep the API server from Berth: put the addresses of your API "
           "servers into berth-viewers (manifests/components/viewers; the chart's "
           "viewers.apiServerCIDRs); administrators can use --via port-forward";
  }
  if (has("dial tcp")) {  // after what the API server itself could not reach
    return "kubectl cannot reach the API server of this context: try kubectl cluster-info";
  }
  return "";
}

// While the object lives: where a NetworkPolicy drops packets, the API server gives up after 30 s,
// and people should not sit before a silent terminal for so long.
class WaitNote {
 public:
  explicit WaitNote(const std::string& who) : thread_([this, who] { Run(who); }) {}
  ~WaitNote() {
    {
      const MutexLock lock(mutex_);
      answered_ = true;
    }
    changed_.NotifyOne();
    thread_.join();
  }

 private:
  void Run(const std::string& who) BERTH_EXCLUDES(mutex_) {
    const Instant late = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    const MutexLock lock(mutex_);
    while (!answered_ && std::chrono::steady_clock::now() < late) changed_.WaitUntil(mutex_, late);
    if (answered_) return;
    std::fprintf(stderr,
                 "berth: note: no answer from %s for 5 s; if the API server does not reach it, it "
                 "says so after 30 s\n",
                 who.c_str());
  }

  Mutex mutex_;
  CondVar changed_;
  bool answered_ BERTH_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

Result<std::string> Ask(const std::string& address, const std::string& who, const char* method,
                        const std::string& path, const std::string& body) {
  BERTH_TRY(http::Answer answer, http::Ask(address, method, path, body));
  return BodyOf(answer.status, std::move(answer.body), who);
}

}  // namespace

Result<std::string> BodyOf(int status, std::string body, const std::string& who) {
  if (status == 200) return body;
  const std::string text = ErrorIn(status, body);
  const std::string advice = AdviceOn(status, text);
  return Fail(CodeOf(status), who + ": " + text + (advice.empty() ? "" : "; " + advice));
}

Result<std::string> AskServer(const ServerAddress& at, const char* method, const std::string& path,
                              const std::string& body) {
  if (!at.cluster) {
    BERTH_TRY(const std::string address, AddressOf(at.url));
    auto answer = Ask(address, at.url, method, path, body);
    const bool is_default = at.url == ServerAddress().url;
    if (answer || answer.error().code != Errc::kUnavailable || !is_default) return answer;
    return Fail(Errc::kUnavailable,
                answer.error().message +
                    "; ask a Berth in a cluster with kubectl berth or --context NAME, another one "
                    "with --server URL, or a file with --cluster FILE");
  }
  BERTH_TRY(const KubectlTunnel tunnel, KubectlTunnel::Open(*at.cluster));
  const WaitNote note(at.cluster->service);
  return Ask(tunnel.address(), at.cluster->service, method, tunnel.prefix() + path, body);
}

}  // namespace berth
