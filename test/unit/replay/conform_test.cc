// SPDX-License-Identifier: Apache-2.0
//
// The suite for extenders: one that is right in every case passes, and each wrong answer is found.
#include "bench/replay/conform/conform.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/mutex.h"
#include "bench/replay/conform/cases.h"
#include "server/http/http_server.h"
#include "test/support/http_fixture.h"
#include "test/support/raw_client.h"

namespace berth::conform::conform_test {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kLarge = 8'000'000;

// An extender that passes every node, gives all the same score, and evicts what it is asked for.
http::HttpResponse Right(std::string_view verb, const std::string& body) {
  if (body.size() > kLarge) {  // of full nodes: all pass, as they came
    const std::size_t nodes = body.find("\"Nodes\":"), end = body.rfind(",\"NodeNames\":null");
    http::HttpResponse response;
    response.body = "{" + body.substr(nodes, end - nodes) + "}";
    return response;
  }
  const Json sent = Json::parse(body, nullptr, false);
  if (!sent.is_object()) return http::ErrorResponse(400, "no request");
  Json args;
  for (const auto& [key, value] : sent.items()) {
    std::string name = key;
    for (char& c : name) c = static_cast<char>(std::tolower(c));
    args[name] = value;
  }
  http::HttpResponse response;
  const auto answer = [&response](const Json& json) {
    response.body = json.dump();
    return response;
  };
  if (verb == "bind") return answer({{"Error", "there is no such pod"}});
  if (!args["pod"].is_object()) {
    return verb == "filter" ? answer({{"Error", "no pod"}}) : http::ErrorResponse(400, "no pod");
  }
  if (verb == "preempt") {
    Json nodes = Json::object();
    for (const char* key : {"nodenametometavictims", "nodenametovictims"}) {
      for (const auto& [name, victims] : args[key].items()) {
        Json pods = Json::array();
        if (!victims.is_object() || victims["Pods"] == Json::array({nullptr})) continue;
        for (const Json& pod : victims["Pods"]) {
          pods.push_back({{"UID", pod.contains("UID") ? pod["UID"] : pod["metadata"]["uid"]}});
        }
        nodes[name] = {{"Pods", pods}, {"NumPDBViolations", 0}};
      }
    }
    return answer({{"NodeNameToMetaVictims", nodes}});
  }
  const Json items = args["nodes"].is_object() ? args["nodes"]["items"] : Json();
  std::set<std::string> names;
  for (const Json& name : args["nodenames"]) names.insert(name.get<std::string>());
  if (verb == "filter") {
    return answer({{"NodeNames", names}, {"Nodes", {{"items", items}}}, {"Error", ""}});
  }
  for (const Json& item : items) names.insert(item["metadata"]["name"].get<std::string>());
  Json scores = Json::array();
  for (const std::string& name : names) scores.push_back({{"Host", name}, {"Score", 5}});
  return answer(scores);
}

// What makes an answer wrong: the whole of it, or its JSON.
using Spoil = std::function<void(http::HttpResponse&)>;

Spoil Changed(const std::function<void(Json&)>& change) {
  return [change](http::HttpResponse& response) {
    Json json = Json::parse(response.body, nullptr, false);
    if (json.is_discarded()) return;
    change(json);
    response.body = json.dump();
  };
}

Spoil Answers(const std::string& body, int status = 200) {
  return [body, status](http::HttpResponse& response) {
    response.status = status;
    response.body = body;
    response.allow.clear();
  };
}

// The routes of the right one; `verb` is spoiled.
http::HttpHandler Extender(const std::string& verb = "", const Spoil& spoil = {}) {
  return [verb, spoil](http::HttpRequest& request) {
    http::HttpResponse response = http::ErrorResponse(404, "no such path");
    for (const std::string_view known : {"filter", "prioritize", "preempt", "bind"}) {
      if (request.path != "/prefix/" + std::string(known)) continue;
      if (request.method == "POST") {
        response = Right(known, std::string(request.body.view()));
      } else {
        response = http::ErrorResponse(405, "want POST");
        response.allow = "POST";
      }
    }
    if (spoil && request.path.starts_with("/prefix/" + verb)) spoil(response);
    return response;
  };
}

ConformOptions OptionsFor(std::uint16_t port, const std::set<std::string>& only = {}) {
  ConformOptions options;
  options.url = "http://127.0.0.1:" + std::to_string(port) + "/prefix/";
  options.only = only;
  options.patience = std::chrono::milliseconds(500);
  return options;
}

std::string FailuresOf(const std::vector<ConformLine>& lines) {
  std::string text;
  for (const ConformLine& line : lines) {
    if (line.outcome != Outcome::kFail) continue;
    text += std::to_string(line.number) + " " + line.verb + ": " + line.got + "\n";
  }
  return text;
}

TEST(Conform, HasEachOfThe72CasesOnce) {
  std::set<int> tried, untried;
  for (const Case& one : ConformCases()) tried.insert(one.number);
  for (const Untried& one : UntriedCases()) {
    EXPECT_TRUE(untried.insert(one.number).second) << one.number;
    EXPECT_FALSE(tried.contains(one.number)) << one.number;
  }
  EXPECT_EQ(tried.size() + untried.size(), 72u);
  EXPECT_EQ(*tried.begin(), 1);
  EXPECT_EQ(*untried.rbegin(), 72);
}

TEST(Conform, AnExtenderThatIsRightPassesInSecondsWithNamesAndWithFullNodes) {
  const auto server = test::StartServer(test::LocalOptions(), Extender());
  for (const bool bodies : {false, true}) {
    ConformOptions options = OptionsFor(server->port());
    options.patience = std::chrono::seconds(5);
    options.node_bodies = bodies;
    const auto lines = Conform(options);
    ASSERT_TRUE(lines) << lines.error().message;
    EXPECT_EQ(FailuresOf(*lines), "");
    EXPECT_EQ(CountOf(*lines, Outcome::kSkip), UntriedCases().size());
  }
  EXPECT_LT(server->stats().requests, 600u);
}

TEST(Conform, FindsEachWrongAnswer) {
  struct Wrong {
    const char* number;
    std::string verb;
    Spoil spoil;
    const char* found;
  };
  const auto failed = [](const char* reason) {
    return Changed([reason](Json& json) {
      json["FailedNodes"] = {{json["NodeNames"][0].get<std::string>(), reason}};
    });
  };
  const auto score = [](const Json& value) {
    return Changed([value](Json& json) { json[0]["Score"] = value; });
  };
  const auto victims = [](const std::function<void(Json&)>& change) {
    return Changed([change](Json& json) { change(json["NodeNameToMetaVictims"]); });
  };
  const auto of_first = [&victims](const Json& value) {
    return victims([value](Json& nodes) { nodes["berth-conform-0"] = value; });
  };
  const auto reasons = [](const std::string& reason) {
    return Changed([reason](Json& json) {
      for (const Json& name : json["NodeNames"]) {
        const auto text = name.get<std::string>();
        json["FailedNodes"][text] = reason + text;
      }
      json["NodeNames"] = nullptr;
    });
  };
  const auto calls = std::make_shared<std::atomic<int>>(0);
  const Spoil changing = [calls](http::HttpResponse& response) {
    Json json = Json::parse(response.body);
    for (const Json& name : json["NodeNames"]) {
      json["FailedNodes"][name.get<std::string>()] = "call " + std::to_string(++*calls);
    }
    json["NodeNames"] = nullptr;
    response.body = json.dump();
  };
  const Wrong wrongs[] = {
      {"1", "filter", Answers(R"({"NodeNames":[]})"), "as if nothing were wrong"},
      {"1", "filter", Answers("{}", 500), "status 500"},
      {"2", "prioritize", Answers(R"([{"Host":"a","Score":1}])"), "as if nothing were wrong"},
      {"3", "preempt", Answers(R"({"NodeNameToMetaVictims":{"a":{"Pods":[]}}})"), "as if nothing"},
      {"4", "bind", Answers("{}"), "as if nothing were wrong"},
      {"5", "filter", Answers(R"({"Error":""})"), "as if nothing were wrong"},
      {"6", "filter", Answers(R"({"Error":"no UID"})"), "Error \"no UID\""},
      {"7", "filter", Changed([](Json& json) { json["NodeNames"] = Json::array(); }),
       "no node passed"},
      {"8", "filter", Answers(R"({"Error":"no nodes"})"), "Error"},
      {"9", "prioritize", Answers(R"([{"Host":"a","Score":1}])"), "as if nothing were wrong"},
      {"10", "filter", Answers(R"({"NodeNames":["other"]})"), "\"other\" passed, and was not sent"},
      {"11", "filter",
       Changed([](Json& json) { json["Nodes"]["items"][1]["metadata"].erase("labels"); }),
       "with other fields"},
      {"12", "prioritize", Changed([](Json& json) { json.erase(4999); }), "Scores of 4999 of 5000"},
      {"13", "filter", Answers(R"({"Nodes":{"items":[]}})"),
       "no node passed, and berth-conform-0 did not fail"},
      {"15", "prioritize", Changed([](Json& json) { json.push_back(json[0]); }), "two entries"},
      {"16", "filter", Answers(R"({"FailedNodes":{"berth-conform-0":"full"}})"),
       "no node passed, and berth-conform-1 did not fail"},
      {"16", "filter", Answers("{}"), "did not fail"},
      {"16", "filter", Answers("null"), "no object"},
      {"16", "filter", Answers("{}{}"), "no JSON alone"},
      {"16", "filter", Answers("\xef\xbb\xbf{}"), "byte order mark"},
      {"16", "filter", Answers(R"({"Error":5})"), "Error is no string"},
      {"16", "filter", Answers(R"({"FailedNodes":[]})"), "no object"},
      {"16", "filter", Answers(R"({"FailedNodes":{"a":1}})"), "a reason that is no string"},
      {"16", "filter", Answers(R"({"NodeNames":[null]})"), "has what is no string"},
      {"16", "filter", Answers(R"({"NodeNames":[]})", 201), "status 201"},
      {"17", "filter", Changed([](Json& json) {
         json["Nodes"]["items"].push_back({{"metadata", {{"name", "other"}}}});
       }),
       "\"other\" passed, and was not sent"},
      {"22", "filter", failed("full"), "berth-conform-0 passed and failed"},
      {"22", "filter", Changed([](Json& json) {
         json["FailedNodes"] = json["FailedAndUnresolvableNodes"] = {{"berth-conform-0", "full"}};
       }),
       "is in both maps"},
      {"23", "filter", reasons("no room on "), "more than 8 different reasons"},
      {"24", "filter", reasons(std::string(200, 'r')), "longer than 200 bytes"},
      {"25", "filter", Answers("{\"FailedNodes\":{\"a\x01\":\"\"}}"), "no JSON alone"},
      {"25", "filter", Answers("{\"FailedNodes\":{\"a\":\"\xff\"}}"), "no JSON alone"},
      {"26", "filter-berth-conform", Answers("{}"), "status 200"},
      {"27", "filter", [](http::HttpResponse& response) { response.allow.clear(); },
       "no Allow: POST"},
      {"27", "bind", Answers("{}"), "status 200"},
      {"28", "filter", Answers("", 301), "status 301"},
      {"29", "filter", Answers("", 400), "status 400"},
      {"35", "filter", Answers("\x1f\x8b"), "no JSON alone"},
      {"45", "prioritize", score(11), "not 0 to 10"},
      {"45", "prioritize", score(-1), "not 0 to 10"},
      {"45", "prioritize", score(5.0), "no integer"},
      {"45", "prioritize", score("7"), "no integer"},
      {"46", "prioritize", Changed([](Json& json) { json[0]["Host"] = "x"; }), "\"x\" has a Score"},
      {"47", "prioritize", Answers("{}"), "no array"},
      {"48", "prioritize", Answers(R"({"Error":"no names"})"), "no array"},
      {"49", "preempt", of_first({{"Pods", {{{"UID", "stranger"}}}}}),
       "UID \"stranger\" is not on"},
      {"50", "preempt", of_first({{"Pods", Json::array()}}), "without its victims"},
      {"50", "preempt", of_first({{"Pods", Json::array({nullptr})}}), "a null pod"},
      {"51", "preempt", of_first(nullptr), "null victims"},
      {"52", "preempt", victims([](Json& nodes) { nodes["x"] = Json::object(); }), "victims on x"},
      {"53", "preempt", of_first({{"Pods", Json::array()}}), "nodes that were not sent"},
      {"56", "bind", Answers(R"({"Error":""})"), "as if nothing were wrong"},
      {"57", "bind", Answers("{}"), "as if nothing were wrong"},
      {"67", "filter", changing, "another answer than before"},
      {"68", "filter", Answers(R"({"Error":"no Pod"})"), "no Pod"},
      {"69", "prioritize", Answers("", 400), "status 400"},
      {"70", "filter", Answers("", 500), "status 500"},
      {"71", "filter", Answers(R"({"Error":"no quantity"})"), "no quantity"},
  };
  for (const Wrong& wrong : wrongs) {
    const auto server = test::StartServer(test::LocalOptions(), Extender(wrong.verb, wrong.spoil));
    const auto lines = Conform(OptionsFor(server->port(), {wrong.number}));
    ASSERT_TRUE(lines) << lines.error().message;
    const std::string failures = FailuresOf(*lines);
    EXPECT_NE(failures.find(wrong.found), std::string::npos)
        << wrong.number << " " << wrong.verb << " wants " << wrong.found << ": " << failures;
  }
}

// A server that serves one connection after the other. It knows Content-Length alone.
class Careless {
 public:
  struct Habits {
    bool closes = true;        // after each answer
    bool ends_early = false;   // with the first client that leaves
    int status = 200;          // of every answer, if it is another
    std::string fields = {};   // of every answer
    int refuses_after = 1000;  // so many connections
  };

  explicit Careless(Habits habits) : habits_(std::move(habits)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(listener_, any, size), 0);
    EXPECT_EQ(listen(listener_, 200), 0);
    EXPECT_EQ(getsockname(listener_, any, &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Loop(); });
  }
  ~Careless() {
    ends_ = true;
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }
  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  void Loop() {
    for (int served = 0; !ends_; ++served) {
      const int peer = accept(listener_, nullptr, nullptr);
      if (peer < 0) return;
      const timeval patience{2, 0};
      setsockopt(peer, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
      const bool good = served >= habits_.refuses_after || Serve(peer);
      close(peer);
      if (!good && habits_.ends_early) return shutdown(listener_, SHUT_RDWR), void();
    }
  }

  // False where the client left, or said nothing for too long.
  bool Serve(int peer) {
    std::string received;
    do {
      std::size_t head = std::string::npos, length = 0;
      while (head == std::string::npos || received.size() < head + 4 + length) {
        std::array<char, 4096> bytes{};
        const ssize_t count = recv(peer, bytes.data(), bytes.size(), 0);
        if (count <= 0) return false;
        received.append(bytes.data(), static_cast<std::size_t>(count));
        head = received.find("\r\n\r\n");
        const std::size_t field = received.find("Content-Length: ");
        if (field < head) length = std::stoul(received.substr(field + 16));
      }
      const std::string path = received.substr(0, received.find(" HTTP"));
      const std::string body = received.substr(head + 4, length);
      received.erase(0, head + 4 + length);
      const http::HttpResponse response = Right(path.substr(path.rfind('/') + 1), body);
      const int status = habits_.status == 200 ? response.status : habits_.status;
      const std::string answer =
          "HTTP/1.1 " + std::to_string(status) +
          " Word\r\nContent-Length: " + std::to_string(response.body.size()) + "\r\n" +
          habits_.fields + "\r\n" + response.body;
      send(peer, answer.data(), answer.size(), MSG_NOSIGNAL);
    } while (!habits_.closes);
    return true;
  }

  const Habits habits_;
  const int listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::uint16_t port_ = 0;
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

TEST(Conform, FindsEachWrongWayWithConnections) {
  struct Wrong {
    const char* number;
    Careless::Habits habits;
    const char* found;
  };
  const Wrong wrongs[] = {
      {"30", {.fields = "Transfer-Encoding: nonsense\r\n"}, "30 filter"},
      {"31", {.status = 417}, "status 417"},
      {"32", {}, "status 400"},
      {"33", {.closes = false}, "the connection stays open"},
      {"34", {.status = 500}, "status 500"},
      {"35", {.fields = "Content-Encoding: br\r\n"}, "Content-Encoding br"},
      {"36", {}, "nothing came for 500 ms"},
      {"37", {.ends_early = true}, "37 filter"},
      {"38", {}, "the connection was closed"},
      {"39", {.refuses_after = 50}, "39 filter"},
      {"40", {}, "the connection was closed"},
  };
  for (const Wrong& wrong : wrongs) {
    const Careless server(wrong.habits);
    const auto lines = Conform(OptionsFor(server.port(), {wrong.number}));
    ASSERT_TRUE(lines) << lines.error().message;
    const std::string failures = FailuresOf(*lines);
    EXPECT_NE(failures.find(wrong.found), std::string::npos)
        << wrong.number << " wants " << wrong.found << ": " << failures;
  }
}

// A hung extender costs a bounded time, and what it cannot do is not counted against it.
TEST(Conform, EndsWithinItsBudgetAndSkipsVerbsThatAreNotThere) {
  Mutex mutex;
  std::vector<http::Reply> kept;
  const auto server = test::StartServer(test::LocalOptions(), [&](http::HttpRequest& request) {
    http::HttpResponse response;
    if (request.path != "/prefix/filter") return http::ErrorResponse(404, "no such path");
    response.later = [&](http::Reply reply) {
      const MutexLock lock(mutex);
      kept.push_back(std::move(reply));
    };
    return response;
  });
  ConformOptions options = OptionsFor(server->port(), {"filter", "prioritize"});
  options.patience = std::chrono::milliseconds(100);
  options.budget = std::chrono::milliseconds(300);
  const auto lines = Conform(options);
  {
    const MutexLock lock(mutex);
    kept.clear();  // a reply does not outlive its server
  }
  ASSERT_TRUE(lines) << lines.error().message;
  EXPECT_EQ(lines->front().got, "no answer: nothing came for 100 ms");
  const auto has = [&lines](const std::string& verb, const char* got) {
    return std::ranges::any_of(*lines, [&](const ConformLine& line) {
      return line.verb == verb && line.outcome == Outcome::kSkip && line.got == got;
    });
  };
  EXPECT_TRUE(has("filter", "no time left"));
  EXPECT_TRUE(has("prioritize", "the extender has no such verb"));
}

TEST(Conform, SaysWhereNoExtenderIs) {
  const auto server = test::StartServer(test::LocalOptions(), Extender());
  ConformOptions options = OptionsFor(server->port());
  options.url = "http://127.0.0.1:" + std::to_string(server->port());
  EXPECT_NE(Conform(options).error().message.find("no verb is there"), std::string::npos);
  for (const char* url : {"https://h/x", "h:1/x", "http://", "http://:1/x", "http://h:x/y"}) {
    options.url = url;
    EXPECT_EQ(Conform(options).error().code, Errc::kInvalidArgument) << url;
  }
  const ExtenderUrl six = ParseExtenderUrl("http://[::1]:8888/a/b/").value();
  EXPECT_EQ(six.host + " " + six.port + " " + six.prefix, "::1 8888 /a/b");
}

TEST(Conform, ReportsALineACheckAndTheCounts) {
  const std::vector<ConformLine> lines = {
      {5, "filter", Outcome::kFail, "no Pod", "4xx", "200 {}", "it decides"},
      {14, "", Outcome::kSkip, "a body over the limit", "", "not known", ""},
      {57, "bind", Outcome::kPass, "no pod", "4xx", "400", "it strands"},
  };
  EXPECT_EQ(ConformText(lines),
            "FAIL   5 filter     no Pod; want 4xx; got 200 {} (it decides)\n"
            "SKIP  14            a body over the limit; not known\n"
            "PASS  57 bind       no pod; want 4xx; got 400\n"
            "Of 3 checks 1 passed, 1 failed, 1 were skipped.\n");
  const auto json = ConformJson(lines);
  EXPECT_EQ(json["failed"], 1);
  EXPECT_EQ(json["cases"][0]["why"], "it decides");
  EXPECT_EQ(json["cases"][1]["result"], "SKIP");
}

}  // namespace
}  // namespace berth::conform::conform_test
