// SPDX-License-Identifier: Apache-2.0
//
// Clients that send too much, too slowly, nonsense, or leave: they lose their connection, and
// nobody else notices.
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "server/http/http_server.h"
#include "test/support/http_fixture.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BERTH_UNDER_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define BERTH_UNDER_SANITIZER
#endif
#endif

namespace berth::http::http_hostile_test {
namespace {

using std::chrono::milliseconds;
using test::ConnectTo;
using test::LocalOptions;
using test::NobodyConnected;
using test::Post;
using test::RawClient;
using test::RawResponse;
using test::Request;
using test::StartServer;

bool StillServes(const HttpServer& server) {
  RawClient client = ConnectTo(server);
  client.Send(Post("/filter", "alive"));
  return client.Read().body == "alive";
}

// What is answered to the bytes of a client that then stops sending.
RawResponse AnswerTo(const HttpServer& server, std::string_view bytes) {
  RawClient client = ConnectTo(server);
  client.Send(bytes);
  client.FinishSending();
  return client.Read();
}

TEST(ExtenderProtocol, Case14_BodyOverTheLimitIsRefusedReadably) {
  HttpServerOptions options = LocalOptions();
  options.max_body_bytes = 1000;
  const auto server = StartServer(options);
  RawClient fits = ConnectTo(*server);
  fits.Send(Post("/filter", std::string(1000, 'x')));
  EXPECT_EQ(fits.Read().status, 200);

  // The client sends all of it before it looks for an answer: no reset may overtake the 413.
  RawClient client = ConnectTo(*server);
  EXPECT_TRUE(client.Send(Post("/filter", std::string(20'000'000, 'x'))));
  const RawResponse response = client.Read();
  EXPECT_EQ(response.status, 413);
  EXPECT_EQ(response.Field("Content-Length"), "0");
  EXPECT_EQ(response.Field("Content-Type"), "");
  EXPECT_EQ(response.Field("Connection"), "close");
  client.FinishSending();
  EXPECT_TRUE(client.ReachesEnd());
}

// So much may connections hold that have nothing to say.
bool HoldsLittle(const HttpServer& server) {
  return test::Eventually([&] { return server.stats().request_bytes < 100'000; });
}

TEST(HttpServer, BoundsAllLargeBodiesTogetherAndLeavesRoomForSmallOnes) {
  HttpServerOptions options = LocalOptions();
  options.max_request_bytes = 10'000'000;
  const auto server = StartServer(options);
  const std::string large(3'000'000, 'x');
  for (const bool chunked : {false, true}) {
    const std::string header =
        Request("POST", "/filter",
                chunked ? "Transfer-Encoding: chunked\r\n" : "Content-Length: 4000000\r\n");
    const std::string size = chunked ? "3d0900\r\n" : "";  // 4,000,000
    RawClient first = ConnectTo(*server);
    first.Send(header + size + large);
    EXPECT_TRUE(test::Eventually([&] { return server->stats().request_bytes >= large.size(); }));
    RawClient second = ConnectTo(*server);
    second.Send(header + size + large);
    EXPECT_EQ(second.Read().status, 503);
    RawClient small = ConnectTo(*server);
    small.Send(Post("/filter", "small"));
    EXPECT_EQ(small.Read().body, "small");
    first.Reset();
    EXPECT_TRUE(HoldsLittle(*server));
  }
  RawClient third = ConnectTo(*server);
  std::thread sender([&] { third.Send(Post("/filter", large)); });
  EXPECT_EQ(third.Read().body.size(), large.size());
  sender.join();
}

// As above, with many bodies none of which is large.
TEST(HttpServer, BoundsManySmallBodiesTogether) {
  HttpServerOptions options = LocalOptions();
  options.max_request_bytes = 4'000'000;
  const auto server = StartServer(options);
  const std::string unfinished =
      Request("POST", "/filter", "Content-Length: 900000\r\n") + std::string(300'000, 'x');
  std::vector<RawClient> clients;
  for (int i = 0; i < 60; ++i) {
    clients.push_back(ConnectTo(*server));
    clients.back().Send(unfinished);
  }
  EXPECT_TRUE(test::Eventually([&] { return server->stats().refused_requests >= 40; }));
  EXPECT_LE(server->stats().request_bytes, options.max_request_bytes + 2'000'000);
  clients.clear();
  EXPECT_TRUE(HoldsLittle(*server));
  EXPECT_TRUE(StillServes(*server));
}

TEST(HttpServer, HoldsLittleForAPromiseOfALargeBody) {
  const auto server = StartServer();
  std::vector<RawClient> clients;
  for (int i = 0; i < 50; ++i) {
    clients.push_back(ConnectTo(*server));
    clients.back().Send(Request("POST", "/filter", "Content-Length: 100000000\r\n") + "x");
  }
  EXPECT_TRUE(test::Eventually([&] { return server->stats().request_bytes >= 50 * 16'000; }));
  EXPECT_LE(server->stats().request_bytes, 50u * 100'000);
}

TEST(HttpServer, BoundsAnswersThatNobodyReads) {
  HttpServerOptions options = LocalOptions();
  options.max_answer_bytes = 60'000'000;
  const auto server = StartServer(options, [](HttpRequest& request) {
    HttpResponse response;
    response.body.assign(request.path == "/large" ? 20'000'000 : 5, 'x');
    return response;
  });
  std::vector<RawClient> silent;
  for (int i = 0; i < 12; ++i) {
    silent.push_back(ConnectTo(*server));
    silent.back().Send(Request("GET", "/large"));
  }
  EXPECT_TRUE(test::Eventually([&] { return server->stats().responses_by_class[5] >= 8; }));
  EXPECT_LE(server->stats().answer_bytes, options.max_answer_bytes);
  RawClient other = ConnectTo(*server);
  other.Send(Request("GET", "/small"));
  EXPECT_EQ(other.Read().body, "xxxxx") << "small answers are given all the same";
  silent.clear();
  EXPECT_TRUE(test::Eventually([&] { return server->stats().answer_bytes == 0; }));
  other.Send(Request("GET", "/large"));
  EXPECT_EQ(other.Read().body.size(), 20'000'000u);
}

TEST(HttpServer, AHandlerForWhichThereIsNoMemoryIsAnswered503) {
  const auto server = StartServer(LocalOptions(), [](HttpRequest& request) -> HttpResponse {
    if (request.path == "/much") throw std::bad_alloc();
    return HttpResponse();
  });
  RawClient client = ConnectTo(*server);
  client.Send(Request("GET", "/much"));
  EXPECT_EQ(client.Read().status, 503);
  client.Send(Request("GET", "/"));
  EXPECT_EQ(client.Read().status, 200);
}

// Where the memory runs out while a body comes: the process goes on.
TEST(HttpServer, ABodyForWhichThereIsNoMemoryCostsItsConnection) {
#if defined(BERTH_UNDER_SANITIZER)
  GTEST_SKIP() << "a sanitizer needs the addresses";
#endif
  HttpServerOptions options = LocalOptions();
  options.max_body_bytes = options.max_request_bytes = std::size_t{1} << 40;
  const auto server = StartServer(options);
  RawClient client = ConnectTo(*server);
  // Made before: a thread of the server that begins just now may take all that is left.
  const std::string head = Request("POST", "/filter", "Content-Length: 1000000000\r\n");
  const std::string part(1'000'000, 'x');
  rlimit before{}, tight{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  unsigned long pages = 0;
  ASSERT_EQ(std::fscanf(file, "%lu", &pages), 1);
  std::fclose(file);
  tight = before;
  tight.rlim_cur = pages * 4096 + 50'000'000;
  ASSERT_EQ(setrlimit(RLIMIT_AS, &tight), 0);
  client.Send(head);
  for (int i = 0; i < 100 && client.Send(part); ++i) {
  }
  EXPECT_TRUE(test::Eventually([&] { return server->stats().handler_exceptions >= 1; }));
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_TRUE(StillServes(*server));
}

TEST(ExtenderProtocol, Case33_AmbiguousLengthsAreRefused) {
  const auto server = StartServer();
  for (const char* fields :
       {"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
        "Content-Length: 4\r\nTransfer-Encoding: identity\r\n",
        "Content-Length: 4\r\nContent-Length: 4\r\n", "Content-Length: 4\r\nContent-Length: 5\r\n",
        "Content-Length: 4, 4\r\n", "Content-Length: -1\r\n", "Content-Length: +4\r\n",
        "Content-Length: 0x4\r\n", "Content-Length: 4 4\r\n", "Content-Length:\r\n",
        "Content-Length: 99999999999999999999999\r\n", "Content-Length: four\r\n",
        "Content-Length : 4\r\n", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"}) {
    RawClient client = ConnectTo(*server);
    client.Send(Request("POST", "/filter", fields) + "0\r\n\r\n" + Post("/filter", "smuggled"));
    const RawResponse response = client.Read();
    EXPECT_EQ(response.status, 400) << fields;
    EXPECT_EQ(response.Field("Connection"), "close") << fields;
    client.FinishSending();
    EXPECT_TRUE(client.ReachesEnd()) << fields;
  }
  EXPECT_EQ(server->stats().requests, 0u);
}

TEST(ExtenderProtocol, Case33_OtherTransferEncodingsAreRefused) {
  const auto server = StartServer();
  for (const char* coding :
       {"gzip", "identity", "gzip, chunked", "chunked, identity", "xchunked"}) {
    const RawResponse response = AnswerTo(
        *server, Request("POST", "/filter", std::string("Transfer-Encoding: ") + coding + "\r\n") +
                     "0\r\n\r\n");
    EXPECT_EQ(response.status, 501) << coding;
  }
  EXPECT_EQ(
      AnswerTo(*server, "POST /filter HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
          .status,
      400);
}

TEST(ExtenderProtocol, Case36_SlowHeaderTimesOutAndBlocksNobody) {
  HttpServerOptions options = LocalOptions();
  options.threads = 1;
  options.header_timeout = milliseconds(150);
  const auto server = StartServer(options);
  RawClient slow = ConnectTo(*server);
  slow.Send("POST /filter HTTP/1.1\r\nHost:");
  EXPECT_TRUE(StillServes(*server));
  const RawResponse response = slow.Read();
  EXPECT_EQ(response.status, 408);
  EXPECT_EQ(response.Field("Connection"), "close");
  slow.FinishSending();
  EXPECT_TRUE(slow.ReachesEnd());
  EXPECT_EQ(server->stats().timeouts, 1u);
}

TEST(ExtenderProtocol, Case36_TricklingDoesNotExtendTheDeadline) {
  HttpServerOptions options = LocalOptions();
  options.header_timeout = milliseconds(150);
  options.body_grace = milliseconds(150);
  const auto server = StartServer(options);
  for (const std::string& beginning :
       {std::string("POST /filter HTTP/1.1\r\nX: "),
        Request("POST", "/filter", "Content-Length: 1000\r\n"),
        Request("POST", "/filter", "Transfer-Encoding: chunked\r\n") + "FFFF\r\n"}) {
    RawClient client = ConnectTo(*server);
    client.Send(beginning);
    std::atomic<bool> answered{false};
    std::thread trickle([&] {
      for (int i = 0; i < 2000 && !answered; ++i) {
        client.Send("x");
        std::this_thread::sleep_for(milliseconds(5));
      }
    });
    EXPECT_EQ(client.Read().status, 408) << beginning;
    answered = true;
    trickle.join();
  }
  EXPECT_EQ(server->stats().timeouts, 3u);
}

TEST(ExtenderProtocol, Case36_SlowBodyTimesOutAndBlocksNobody) {
  HttpServerOptions options = LocalOptions();
  options.threads = 1;
  options.body_grace = milliseconds(150);
  const auto server = StartServer(options);
  RawClient slow = ConnectTo(*server);
  slow.Send(Request("POST", "/filter", "Content-Length: 100\r\n") + "some");
  EXPECT_TRUE(StillServes(*server));
  EXPECT_EQ(slow.Read().status, 408);
  slow.FinishSending();
  EXPECT_TRUE(slow.ReachesEnd());
  EXPECT_EQ(server->stats().requests, 1u);
}

TEST(HttpServer, GivesUpOnAClientThatDoesNotTakeItsAnswer) {
  HttpServerOptions options = LocalOptions();
  options.write_grace = milliseconds(100);
  options.min_bytes_per_second = 1'000'000'000;
  const auto server = StartServer(options, [](HttpRequest&) {
    HttpResponse response;
    response.body.assign(50'000'000, 'x');
    return response;
  });
  RawClient client = ConnectTo(*server);
  client.Send(Request("GET", "/"));
  EXPECT_TRUE(test::Eventually([&] { return server->stats().timeouts == 1; }));
  EXPECT_TRUE(NobodyConnected(*server));
}

TEST(ExtenderProtocol, Case37_ClientThatLeavesMidRequestLeavesNothingBehind) {
  const auto server = StartServer();
  const std::string request = Post("/filter", std::string(300'000, 'x'));
  for (const std::size_t sent :
       {std::size_t{0}, std::size_t{10}, std::size_t{200}, request.size() - 1}) {
    for (int i = 0; i < 50; ++i) {
      RawClient client = ConnectTo(*server);
      std::thread sender([&] { client.Send(std::string_view(request).substr(0, sent)); });
      sender.join();
      if (i % 2 == 0) {
        client.Reset();
      }
    }
  }
  EXPECT_TRUE(NobodyConnected(*server));
  EXPECT_EQ(server->stats().requests, 0u);
  EXPECT_TRUE(StillServes(*server));
}

TEST(ExtenderProtocol, Case37_ClientThatLeavesBeforeItsAnswerHarmsNobody) {
  const auto server = StartServer();
  for (int i = 0; i < 50; ++i) {
    RawClient client = ConnectTo(*server);
    client.Send(Post("/filter", std::string(100'000, 'x')));
    client.Reset();
  }
  EXPECT_TRUE(StillServes(*server));
  EXPECT_TRUE(NobodyConnected(*server));
}

TEST(ExtenderProtocol, Case40_IdleConnectionOutlivesGosClient) {
  EXPECT_GE(HttpServerOptions().idle_timeout, std::chrono::seconds(120));
  HttpServerOptions options = LocalOptions();
  options.header_timeout = options.body_grace = options.write_grace = milliseconds(20);
  const auto server = StartServer(options);
  RawClient fresh = ConnectTo(*server);
  RawClient used = ConnectTo(*server);
  used.Send(Post("/filter", "1"));
  EXPECT_EQ(used.Read().body, "1");
  std::this_thread::sleep_for(milliseconds(150));  // several of the other deadlines
  used.Send(Post("/filter", "2"));
  EXPECT_EQ(used.Read().body, "2");
  fresh.Send(Post("/filter", "3"));
  EXPECT_EQ(fresh.Read().body, "3");
}

TEST(HttpServer, ClosesIdleConnectionsSilently) {
  HttpServerOptions options = LocalOptions();
  options.idle_timeout = milliseconds(100);
  const auto server = StartServer(options);
  RawClient fresh = ConnectTo(*server);
  RawClient used = ConnectTo(*server);
  used.Send(Post("/filter", "1"));
  EXPECT_EQ(used.Read().body, "1");
  EXPECT_TRUE(fresh.ReachesEnd());
  EXPECT_TRUE(used.ReachesEnd());
  EXPECT_EQ(server->stats().timeouts, 0u);
}

TEST(HttpServer, ClosesBareConnections) {
  HttpServerOptions options = LocalOptions();
  options.idle_timeout = milliseconds(100);
  const auto server = StartServer(options);
  std::vector<RawClient> clients;
  for (int i = 0; i < 200; ++i) {
    clients.push_back(ConnectTo(*server));
  }
  for (RawClient& client : clients) {
    EXPECT_TRUE(client.ReachesEnd());
  }
  EXPECT_TRUE(NobodyConnected(*server));
}

TEST(HttpServer, RefusesMalformedChunks) {
  const auto server = StartServer();
  for (const char* chunks :
       {"-1\r\nabc\r\n0\r\n\r\n", "-2\r\nabc\r\n0\r\n\r\n", "\r\nabc\r\n0\r\n\r\n",
        "zz\r\nabc\r\n0\r\n\r\n", "0x3\r\nabc\r\n0\r\n\r\n", "3\r\nabcd\r\n0\r\n\r\n",
        "3;=\r\nabc\r\n0\r\n\r\n", "fffffffffffffffff\r\nabc\r\n0\r\n\r\n",
        "3\r\nabc\r\n0\r\nContent-Length: 5\r\n\r\n"}) {
    const RawResponse response =
        AnswerTo(*server, Request("POST", "/filter", "Transfer-Encoding: chunked\r\n") + chunks);
    EXPECT_EQ(response.status, 400) << chunks;
  }
  for (const char* size : {"ffffffff", "FFFFFFFFFFFFFFFF", "8000001"}) {
    const RawResponse response =
        AnswerTo(*server, Request("POST", "/filter", "Transfer-Encoding: chunked\r\n") + size +
                              "\r\nabc\r\n0\r\n\r\n");
    EXPECT_EQ(response.status, 413) << size;
  }
  EXPECT_EQ(AnswerTo(*server, Request("POST", "/filter", "Transfer-Encoding: chunked\r\n") +
                                  "3;ext=1\r\nabc\r\n0\r\n\r\n")
                .body,
            "abc");
  EXPECT_TRUE(StillServes(*server));
}

TEST(HttpServer, BoundsChunkHeadersAndTrailers) {
  const auto server = StartServer();
  for (const char* beginning : {"3;", "0\r\nX: "}) {
    const RawResponse response =
        AnswerTo(*server, Request("POST", "/filter", "Transfer-Encoding: chunked\r\n") + beginning +
                              std::string(200'000, 'x'));
    EXPECT_EQ(response.status, 431) << beginning;
  }
}

TEST(HttpServer, BoundsTheHeader) {
  HttpServerOptions options = LocalOptions();
  options.max_header_bytes = 1000;
  const auto server = StartServer(options);
  const std::string frame = Request("GET", "/healthz", "X: \r\n");
  const std::string fits(1000 - frame.size(), 'x');
  EXPECT_EQ(AnswerTo(*server, Request("GET", "/healthz", "X: " + fits + "\r\n")).status, 200);
  EXPECT_EQ(AnswerTo(*server, Request("GET", "/healthz", "X: x" + fits + "\r\n")).status, 431);
  EXPECT_EQ(AnswerTo(*server, "GET /" + std::string(100'000, 'x')).status, 431);
  std::string endless = "GET /healthz HTTP/1.1\r\n";
  for (int i = 0; i < 100'000; ++i) {
    endless += "X: x\r\n";
  }
  EXPECT_EQ(AnswerTo(*server, endless).status, 431);
}

// The numbers that SECURITY.md states.
TEST(HttpServer, TakesAHeaderOf64KiBAndNoMore) {
  const auto server = StartServer();
  const std::string frame = Request("GET", "/healthz", "X: \r\n");
  const std::string fits((std::size_t{64} << 10) - frame.size(), 'x');
  EXPECT_EQ(AnswerTo(*server, Request("GET", "/healthz", "X: " + fits + "\r\n")).status, 200);
  EXPECT_EQ(AnswerTo(*server, Request("GET", "/healthz", "X: x" + fits + "\r\n")).status, 431);
}

TEST(HttpServer, RefusesABodyOfMoreThan128MiBByItsLength) {
  const auto server = StartServer();
  const auto status = [&server](const char* length) {
    const std::string field = "Content-Length: " + std::string(length) + "\r\n";
    RawClient client = ConnectTo(*server);
    client.Send(Request("POST", "/filter", field + "Expect: 100-continue\r\n"));
    return client.ReadHeader().status;
  };
  EXPECT_EQ(status("134217728"), 100);
  EXPECT_EQ(status("134217729"), 413);
}

TEST(HttpServer, AnErrorQuotesNotMoreThan1000Bytes) {
  const HttpResponse response = ErrorResponse(400, std::string(1'000'000, 'x'));
  EXPECT_LT(response.body.size(), 1100u);
  EXPECT_TRUE(response.body.ends_with("x...\"}"));
}

TEST(HttpServer, RefusesGarbageWithoutWaitingForMore) {
  const auto server = StartServer();
  for (const std::string& garbage :
       {std::string("garbage\r\n"), std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11),
        std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), std::string("GET / HTTP/9.9\r\n"),
        std::string("GET / HTTP/1.1\nHost: x\n\n"), std::string("GET  / HTTP/1.1\r\n"),
        std::string("GET /a b HTTP/1.1\r\n"), std::string("GET /\r\n"), std::string("\0\0\0\0", 4),
        std::string("GET / HTTP/1.1\r\nno colon\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\n: empty\r\n\r\n"),
        std::string("GE\tT / HTTP/1.1\r\n\r\n")}) {
    RawClient client = ConnectTo(*server);
    client.Send(garbage);
    EXPECT_EQ(client.Read().status, 400) << garbage;
  }
  EXPECT_TRUE(StillServes(*server));
}

TEST(HttpServer, SurvivesRandomBytesBehindAValidBeginning) {
  const auto server = StartServer();
  std::uint32_t seed = 20240607;  // a fixed sequence: the minimal standard generator
  const auto next = [&seed] {
    return seed = static_cast<std::uint32_t>(seed * 48271ULL % 2147483647);
  };
  for (int i = 0; i < 300; ++i) {
    std::string bytes = Request("POST", "/filter", "Transfer-Encoding: chunked\r\n");
    bytes.resize(bytes.size() - next() % 8);
    constexpr std::string_view kLetters = "0123af\r\n\r\n;:= \t-x";
    for (std::uint32_t n = next() % 60; n > 0; --n) {
      bytes += kLetters[next() % kLetters.size()];
    }
    RawClient client = ConnectTo(*server);
    client.Send(bytes);
    client.FinishSending();
    client.ReadToEnd();
  }
  EXPECT_TRUE(NobodyConnected(*server));
  EXPECT_TRUE(StillServes(*server));
}

TEST(HttpServer, RefusesUnknownExpectations) {
  const auto server = StartServer();
  EXPECT_EQ(
      AnswerTo(*server, Request("POST", "/filter", "Content-Length: 0\r\nExpect: miracles\r\n"))
          .status,
      417);
}

TEST(HttpServer, RefusesWhatAPageOfAnotherSiteSends) {
  const auto server = StartServer();
  const auto status = [&server](const char* method, const std::string& fields) {
    const std::string head = std::string(method) + " /filter HTTP/1.1\r\nHost: berth:8080\r\n";
    return AnswerTo(*server, head + "Content-Length: 0\r\n" + fields + "\r\n").status;
  };
  EXPECT_EQ(status("POST", ""), 200);
  EXPECT_EQ(status("POST", "Origin: http://evil.example\r\n"), 403);
  EXPECT_EQ(status("POST", "Origin: null\r\n"), 403);
  EXPECT_EQ(status("POST", "Origin: http://berth:8081\r\n"), 403);
  EXPECT_EQ(status("POST", "Sec-Fetch-Site: cross-site\r\n"), 403);
  EXPECT_EQ(status("POST", "Origin: http://Berth:8080\r\n"), 200);
  EXPECT_EQ(status("POST", "Origin: https://a.example\r\nSec-Fetch-Site: same-origin\r\n"), 200)
      << "a proxy between may change the Host";
  EXPECT_NE(status("GET", "Origin: http://evil.example\r\n"), 403);
}

TEST(HttpServer, ClosesConnectionsOverItsLimit) {
  HttpServerOptions options = LocalOptions();
  options.max_connections = 2;
  const auto server = StartServer(options);
  RawClient first = ConnectTo(*server);
  RawClient second = ConnectTo(*server);
  RawClient third = ConnectTo(*server);
  EXPECT_TRUE(third.ReachesEnd());
  for (RawClient* client : {&first, &second}) {
    client->Send(Post("/filter", "1"));
    EXPECT_EQ(client->Read().body, "1");
  }
  EXPECT_EQ(server->stats().refused_connections, 1u);
}

TEST(HttpServer, GoesOnServingWithoutFileDescriptors) {
  const auto server = StartServer();
  RawClient before = ConnectTo(*server);
  before.Send(Post("/filter", "1"));
  EXPECT_EQ(before.Read().body, "1");

  // With the limit at the lowest free number no descriptor can be made, and connect needs none.
  const int late = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(server->port());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const int lowest_free = dup(late);
  close(lowest_free);
  rlimit none = limit;
  none.rlim_cur = static_cast<rlim_t>(lowest_free);
  setrlimit(RLIMIT_NOFILE, &none);
  const int connected = connect(late, reinterpret_cast<sockaddr*>(&address), sizeof address);
  const bool refused = test::Eventually([&] { return server->stats().refused_connections > 0; });
  before.Send(Post("/filter", "2"));
  const std::string answer = before.Read().body;
  setrlimit(RLIMIT_NOFILE, &limit);
  EXPECT_EQ(connected, 0);
  EXPECT_TRUE(refused);
  EXPECT_EQ(answer, "2");
  EXPECT_TRUE(test::Eventually([&] { return server->stats().accepted == 2; }))
      << "who waited is served when there are descriptors again";
  EXPECT_LT(server->stats().refused_connections, 100u) << "and there was no spinning meanwhile";
  close(late);
}

}  // namespace
}  // namespace berth::http::http_hostile_test
