// SPDX-License-Identifier: Apache-2.0
#include "server/commands/ask_server.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/dns_name.h"
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

// A person may have to log in first: the browser of an exec plugin.
constexpr Duration kPatience = std::chrono::minutes(2);

struct Child {
  pid_t pid = -1;
  int out = -1;  // its stdout
};

std::vector<std::string> ArgumentsFor(const KubectlTarget& target) {
  std::vector<std::string> arguments = {"kubectl"};
  if (!target.kubeconfig.empty()) arguments.push_back("--kubeconfig=" + target.kubeconfig);
  if (!target.context.empty()) arguments.push_back("--context=" + target.context);
  return arguments;
}

Result<Child> Start(const std::vector<std::string>& arguments, bool aloud = true) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Fail(Errc::kUnavailable, std::strerror(errno));
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  if (!aloud) posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  Child child;
  const int failed = posix_spawnp(&child.pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (failed == 0) {
    child.out = ends[0];
    return child;
  }
  close(ends[0]);
  return Fail(Errc::kUnavailable, std::string("kubectl: ") + std::strerror(failed) +
                                      "; want it in PATH, or --server URL instead");
}

// Reads on into `text`; false at the end, or where nothing comes before the limit.
bool ReadMore(int out, Instant limit, std::string& text) {
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        limit - std::chrono::steady_clock::now());
    pollfd waits{out, POLLIN, 0};
    const int ready = poll(&waits, 1, static_cast<int>(std::max<long>(left.count(), 0)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    char bytes[4096];
    const ssize_t count = read(out, bytes, sizeof bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    text.append(bytes, static_cast<std::size_t>(count));
    return true;
  }
}

// HOST:PORT after `before`; empty: the text has it not, or not whole.
std::string AddressAfter(std::string_view text, std::string_view before) {
  const std::size_t at = text.find(before);
  if (at == std::string_view::npos) return "";
  const std::string_view rest = text.substr(at + before.size());
  const std::size_t end = rest.find_first_of(" \n");
  return end == std::string_view::npos ? "" : std::string(rest.substr(0, end));
}

void End(const Child& child) {
  if (child.pid > 0) {
    kill(child.pid, SIGTERM);
    int status = 0;
    while (waitpid(child.pid, &status, 0) < 0 && errno == EINTR) continue;
  }
  if (child.out >= 0) close(child.out);
}

}  // namespace

Result<KubectlTunnel> KubectlTunnel::Open(const KubectlTarget& target) {
  const std::size_t slash = target.service.find('/');
  const std::string space = target.service.substr(0, slash);
  const std::string name = slash == std::string::npos ? "" : target.service.substr(slash + 1);
  if (!IsDnsLabel(space) || !IsDnsLabel(name)) {
    return Invalid("--service: want NAMESPACE/NAME, got \"" + target.service + "\"");
  }
  std::vector<std::string> arguments = ArgumentsFor(target);
  KubectlTunnel tunnel;
  std::string_view before;
  if (target.port_forward) {
    arguments.insert(arguments.end(), {"--namespace=" + space, "port-forward",
                                       "--address=127.0.0.1", "service/" + name, ":debug"});
    before = "Forwarding from ";
  } else {
    tunnel.prefix_ = "/api/v1/namespaces/" + space + "/services/" + name + ":debug/proxy";
    // Nobody else on this machine reaches more by it than Berth's pages, and while it runs.
    arguments.insert(arguments.end(), {"proxy", "--port=0", "--address=127.0.0.1",
                                       "--accept-paths=^" + tunnel.prefix_ + "/"});
    before = "Starting to serve on ";
  }
  BERTH_TRY(const Child child, Start(arguments));
  tunnel.pid_ = child.pid;
  tunnel.out_ = child.out;
  const Instant limit = std::chrono::steady_clock::now() + kPatience;
  std::string text;
  while (tunnel.address_.empty() && ReadMore(child.out, limit, text)) {
    tunnel.address_ = AddressAfter(text, before);
  }
  if (tunnel.address_.empty()) {
    return Fail(Errc::kUnavailable, std::string("kubectl ") +
                                        (target.port_forward ? "port-forward" : "proxy") +
                                        " did not start" + (text.empty() ? "" : ": " + text));
  }
  return tunnel;
}

KubectlTunnel::KubectlTunnel(KubectlTunnel&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      out_(std::exchange(other.out_, -1)),
      address_(std::move(other.address_)),
      prefix_(std::move(other.prefix_)) {}

KubectlTunnel::~KubectlTunnel() { End({pid_, out_}); }

Result<std::string> KubectlPrints(const KubectlTarget& target,
                                  const std::vector<std::string>& arguments, std::size_t most_bytes,
                                  bool aloud) {
  std::vector<std::string> all = ArgumentsFor(target);
  all.insert(all.end(), arguments.begin(), arguments.end());
  BERTH_TRY(const Child child, Start(all, aloud));
  const Instant limit = std::chrono::steady_clock::now() + kPatience;
  std::string text;
  while (text.size() <= most_bytes && ReadMore(child.out, limit, text)) continue;
  const bool goes_on = text.size() > most_bytes || std::chrono::steady_clock::now() >= limit;
  if (goes_on) kill(child.pid, SIGTERM);
  int status = 0;
  while (waitpid(child.pid, &status, 0) < 0 && errno == EINTR) continue;
  close(child.out);
  if (!goes_on && status == 0) return text;
  return Fail(Errc::kUnavailable, "kubectl " + Join(arguments, " ") + " failed");
}

Result<std::string> CurrentNamespace(const KubectlTarget& target) {
  const auto text = KubectlPrints(
      target, {"config", "view", "--minify", "--output=jsonpath={..namespace}"}, 4096, true);
  if (!text) return Fail(Errc::kUnavailable, "kubectl has no current context");
  return text->empty() ? "default" : *text;
}

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
