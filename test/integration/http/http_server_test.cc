// SPDX-License-Identifier: Apache-2.0
//
// How the server speaks HTTP to clients that behave, more or less.
#include "server/http/http_server.h"

#include <future>
#include <latch>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/http_fixture.h"

namespace berth::http::http_server_test {
namespace {

using test::ConnectTo;
using test::LocalOptions;
using test::NobodyConnected;
using test::Post;
using test::RawClient;
using test::RawResponse;
using test::Request;
using test::StartServer;

TEST(HttpServer, AnswersWithExactLengthAndNothingMore) {
  const auto server = StartServer();
  RawClient client = ConnectTo(*server);
  client.Send(Request("POST", "/filter", "Content-Length: 3\r\nConnection: close\r\n") + "abc");
  EXPECT_EQ(client.ReadToEnd(),
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
            "Content-Length: 3\r\n\r\nabc");
}

TEST(HttpServer, TellsHandlersWhetherAClientTakesGzipAndWhichTextItHas) {
  const auto server = StartServer(LocalOptions(), [](HttpRequest& request) {
    HttpResponse response;
    response.body = request.accepts_gzip ? "gzip " : "plain ";
    response.body += request.if_none_match;
    return response;
  });
  RawClient client = ConnectTo(*server);
  const std::pair<const char*, const char*> cases[] = {
      {"", "plain "},
      {"Accept-Encoding: gzip\r\n", "gzip "},
      {"Accept-Encoding: deflate;q=0.5, GZip;q=0.7, br\r\n", "gzip "},
      {"Accept-Encoding: gzip;q=0.0, br\r\n", "plain "},
      {"Accept-Encoding: gzipped, ,;,\r\n", "plain "},
      {"If-None-Match: W/\"1\", \"2\"\r\n", "plain W/\"1\", \"2\""}};
  for (const auto& [field, answer] : cases) {
    client.Send(Request("GET", "/filter", field));
    EXPECT_EQ(client.Read().body, answer) << field;
  }
}

TEST(HttpServer, ARequestBeginsWhenItArrives) {
  HttpServerOptions options = LocalOptions();
  options.threads = 1;
  std::latch busy(1), go_on(1);
  std::promise<Instant> began;
  const auto server = StartServer(options, [&](HttpRequest& request) {
    if (request.path == "/slow") {
      busy.count_down();
      go_on.wait();
    } else if (request.path == "/waits") {
      began.set_value(request.began);
    }
    return HttpResponse();
  });
  RawClient slow = ConnectTo(*server), waits = ConnectTo(*server);
  waits.Send(Request("GET", "/"));
  EXPECT_EQ(waits.Read().status, 200);
  slow.Send(Request("GET", "/slow"));
  busy.wait();
  waits.Send(Request("GET", "/waits"));
  const Instant sent = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // the kernel's clock goes on
  const Instant released = std::chrono::steady_clock::now();
  go_on.count_down();
  const Instant at = began.get_future().get();
  EXPECT_LT(at - sent, (released - sent) / 2) << "the wait for the thread counts";
}

TEST(HttpServer, KeepsBodiesOfEverySizeIntact) {
  const auto server = StartServer();
  RawClient client = ConnectTo(*server);
  for (const std::size_t size :
       {0u, 1u, 3900u, 4096u, 157'000u, 1'048'576u, 1'048'577u, 9'000'000u, 5u}) {
    std::string body(size, '\0');
    for (std::size_t i = 0; i < size; ++i) {
      body[i] = static_cast<char>('a' + i * 31 % 26);
    }
    std::thread sender([&] { client.Send(Post("/filter", body)); });
    const RawResponse response = client.Read();
    sender.join();
    EXPECT_EQ(response.status, 200);
    EXPECT_TRUE(response.body == body) << size;
  }
}

TEST(HttpServer, GivesHandlersRoomBehindTheBody) {
  bool has_padding = true;
  const auto server = StartServer(LocalOptions(), [&](HttpRequest& request) {
    has_padding =
        has_padding && request.body.capacity() >= request.body.size() + PaddedText::kPadding;
    HttpResponse response;
    response.body = std::to_string(request.body.size());
    return response;
  });
  RawClient client = ConnectTo(*server);
  for (const std::size_t size :
       {0u, 1u, 15u, 16u, 1024u, 4096u, 157'000u, 1'048'576u, 2'000'000u, 7u}) {
    client.Send(Post("/", std::string(size, 'x')));
    EXPECT_EQ(client.Read().body, std::to_string(size));
  }
  client.Send(Request("POST", "/", "Transfer-Encoding: chunked\r\n") +
              "10\r\n0123456789abcdef\r\n0\r\n\r\n");
  EXPECT_EQ(client.Read().body, "16");
  EXPECT_TRUE(has_padding);
}

TEST(HttpServer, SpeaksHttp10) {
  const auto server = StartServer();
  RawClient once = ConnectTo(*server);
  once.Send("GET /healthz HTTP/1.0\r\n\r\n");
  const RawResponse response = once.Read();
  EXPECT_EQ(response.body, "ok");
  EXPECT_EQ(response.Field("Connection"), "close");
  EXPECT_TRUE(once.ReachesEnd());

  RawClient keeps = ConnectTo(*server);
  for (int i = 0; i < 2; ++i) {
    keeps.Send("GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    EXPECT_EQ(keeps.Read().Field("Connection"), "keep-alive");
  }
}

TEST(HttpServer, AnAnswerMayEndItsConnection) {
  const auto server = StartServer(LocalOptions(), [](HttpRequest& request) {
    HttpResponse response;
    response.ends_connection = request.path == "/last";
    return response;
  });
  RawClient client = ConnectTo(*server);
  client.Send(Request("GET", "/first"));
  EXPECT_EQ(client.Read().Field("Connection"), "");
  client.Send(Request("GET", "/last"));
  EXPECT_EQ(client.Read().Field("Connection"), "close");
  EXPECT_TRUE(client.ReachesEnd());
}

TEST(HttpServer, ForgivesEmptyLinesBetweenRequests) {
  const auto server = StartServer();
  RawClient client = ConnectTo(*server);
  client.Send("\r\n" + Post("/filter", "1") + "\r\n\r\n" + Post("/filter", "2") + "\r\n");
  EXPECT_EQ(client.Read().body, "1");
  EXPECT_EQ(client.Read().body, "2");
  client.Send(Post("/filter", "3"));
  EXPECT_EQ(client.Read().body, "3");
}

TEST(HttpServer, AnswersAClientThatHasFinishedSending) {
  const auto server = StartServer();
  RawClient client = ConnectTo(*server);
  client.Send(Post("/filter", "1") + Post("/filter", "2"));
  client.FinishSending();
  EXPECT_EQ(client.Read().body, "1");
  EXPECT_EQ(client.Read().body, "2");
  EXPECT_TRUE(client.ReachesEnd());
}

TEST(HttpServer, ReadsARequestThatArrivesByteByByte) {
  const auto server = StartServer();
  RawClient client = ConnectTo(*server);
  const std::string chunked = Request("POST", "/filter", "Transfer-Encoding: chunked\r\n") +
                              "3;a=\"b\"\r\nabc\r\n2\r\nde\r\n0\r\nTrailer: x\r\n\r\n";
  for (const char& byte : chunked + Post("/filter", "0123")) {
    ASSERT_TRUE(client.Send(std::string_view(&byte, 1)));
  }
  EXPECT_EQ(client.Read().body, "abcde");
  EXPECT_EQ(client.Read().body, "0123");
}

TEST(HttpServer, ListensOnIPv6) {
  HttpServerOptions options = LocalOptions();
  options.listen = "[::1]:0";
  const auto server = StartServer(options);
  EXPECT_EQ(server->address(), "[::1]:" + std::to_string(server->port()));
  RawClient client("::1", server->port());
  client.Send(Request("GET", "/healthz"));
  EXPECT_EQ(client.Read().body, "ok");
}

TEST(HttpServer, ListensOnBothFamiliesWithoutAHost) {
  HttpServerOptions options = LocalOptions();
  options.listen = ":0";
  const auto server = StartServer(options);
  for (const char* host : {"127.0.0.1", "::1"}) {
    RawClient client(host, server->port());
    client.Send(Request("GET", "/healthz"));
    EXPECT_EQ(client.Read().body, "ok") << host;
  }
}

TEST(HttpServer, SaysWhatIsWrongWithItsAddress) {
  for (const char* listen : {"", "8080", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "::1:80",
                             "[::1]", "[]:80", "[::1:80", "a:b"}) {
    HttpServerOptions options;
    options.listen = listen;
    const auto server = HttpServer::Start(options, test::EchoRoutes());
    ASSERT_FALSE(server) << listen;
    EXPECT_EQ(server.error().code, Errc::kInvalidArgument);
    EXPECT_EQ(server.error().message,
              "listen: want HOST:PORT, [V6]:PORT or :PORT, got \"" + std::string(listen) + "\"");
  }
  const auto first = StartServer();
  HttpServerOptions options;
  options.listen = first->address();
  const auto second = HttpServer::Start(options, test::EchoRoutes());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().message, "listen " + first->address() + ": address already in use");
}

TEST(HttpServer, SaysWhichOptionIsOutOfRange) {
  HttpServerOptions options = LocalOptions();
  options.threads = 0;
  const auto server = HttpServer::Start(options, test::EchoRoutes());
  ASSERT_FALSE(server);
  EXPECT_EQ(server.error().message, "threads: want 1 to 256, got 0");
}

TEST(HttpServer, CountsWhatItDoes) {
  const auto server = StartServer();
  RawClient client = ConnectTo(*server);
  client.Send(Post("/filter", "1") + Post("/nowhere", "") + Post("/throw", "") + "garbage\r\n\r\n");
  client.FinishSending();
  EXPECT_NE(client.ReadToEnd(), "");
  const HttpServerStats stats = server->stats();
  EXPECT_EQ(stats.accepted, 1u);
  EXPECT_EQ(stats.requests, 3u);
  EXPECT_EQ(stats.responses_by_class[2], 1u);
  EXPECT_EQ(stats.responses_by_class[4], 2u);
  EXPECT_EQ(stats.responses_by_class[5], 1u);
  EXPECT_EQ(stats.refused_requests, 1u);
  EXPECT_EQ(stats.handler_exceptions, 1u);
  EXPECT_EQ(stats.timeouts, 0u);
  EXPECT_TRUE(NobodyConnected(*server));
}

TEST(ExtenderProtocol, Case31_ExpectContinueIsAnswered) {
  const auto server = StartServer();
  RawClient client = ConnectTo(*server);
  for (int i = 0; i < 2; ++i) {
    client.Send(Request("POST", "/filter", "Content-Length: 4\r\nExpect: 100-continue\r\n"));
    const RawResponse interim = client.ReadHeader();
    EXPECT_EQ(interim.status, 100);
    client.Send("body");
    EXPECT_EQ(client.Read().body, "body");
  }
  client.Send(Request("POST", "/filter", "Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n"));
  EXPECT_EQ(client.ReadHeader().status, 100);
  client.Send("1\r\nx\r\n0\r\n\r\n");
  EXPECT_EQ(client.Read().body, "x");
}

TEST(ExtenderProtocol, Case31_ExpectContinueOverTheLimitIsRefusedAtOnce) {
  const auto server = StartServer();
  RawClient client = ConnectTo(*server);
  client.Send(Request("POST", "/filter", "Content-Length: 134217729\r\nExpect: 100-continue\r\n"));
  EXPECT_EQ(client.Read().status, 413);
  client.FinishSending();
  EXPECT_TRUE(client.ReachesEnd());
}

TEST(ExtenderProtocol, Case32_ChunkedRequestIsAccepted) {
  const auto server = StartServer();
  RawClient client = ConnectTo(*server);
  std::string chunks;
  std::string body;
  for (int i = 1; i <= 300; ++i) {
    const std::string chunk(static_cast<std::size_t>(i * 7), static_cast<char>('a' + i % 26));
    char size[16];
    std::snprintf(size, sizeof size, "%zX\r\n", chunk.size());
    chunks += size + chunk + "\r\n";
    body += chunk;
  }
  for (int i = 0; i < 2; ++i) {
    client.Send(Request("POST", "/filter", "Transfer-Encoding: Chunked\r\n") + chunks +
                "0\r\n\r\n");
    const RawResponse response = client.Read();
    EXPECT_EQ(response.status, 200);
    EXPECT_TRUE(response.body == body);
  }
}

TEST(ExtenderProtocol, Case32_ChunkedRequestHasTheSameLimit) {
  HttpServerOptions options = LocalOptions();
  options.max_body_bytes = 10;
  const auto server = StartServer(options);
  RawClient fits = ConnectTo(*server);
  fits.Send(Request("POST", "/filter", "Transfer-Encoding: chunked\r\n") +
            "5\r\n01234\r\n5\r\n56789\r\n0\r\n\r\n");
  EXPECT_EQ(fits.Read().body, "0123456789");
  RawClient too_large = ConnectTo(*server);
  too_large.Send(Request("POST", "/filter", "Transfer-Encoding: chunked\r\n") +
                 "5\r\n01234\r\n6\r\n567890\r\n0\r\n\r\n");
  EXPECT_EQ(too_large.Read().status, 413);
}

TEST(ExtenderProtocol, Case34_CompressedBodyIsUnsupported) {
  const auto server = StartServer();
  for (const char* coding : {"gzip", "GZIP", "identity, gzip", "br"}) {
    RawClient client = ConnectTo(*server);
    client.Send(Request("POST", "/filter",
                        std::string("Content-Length: 2\r\nContent-Encoding: ") + coding + "\r\n") +
                "{}");
    EXPECT_EQ(client.Read().status, 415) << coding;
  }
  RawClient client = ConnectTo(*server);
  client.Send(Request("POST", "/filter", "Content-Length: 2\r\nContent-Encoding: identity\r\n") +
              "{}");
  EXPECT_EQ(client.Read().status, 200);
}

TEST(ExtenderProtocol, Case38_PipelinedRequestsAreAnsweredInOrder) {
  const auto server = StartServer();
  RawClient client = ConnectTo(*server);
  constexpr int kRequests = 500;
  std::string requests;
  for (int i = 0; i < kRequests; ++i) {
    requests += Post("/filter", std::to_string(i));
  }
  client.Send(requests);
  for (int i = 0; i < kRequests; ++i) {
    ASSERT_EQ(client.Read().body, std::to_string(i));
  }
}

TEST(ExtenderProtocol, Case39_ThousandConnectionsAreAllAnswered) {
  const auto server = StartServer();
  constexpr std::size_t kClients = 1000;
  std::vector<RawClient> clients;
  for (std::size_t i = 0; i < kClients; ++i) {
    clients.push_back(ConnectTo(*server));
    ASSERT_TRUE(clients.back().connected()) << i;
  }
  for (std::size_t i = 0; i < kClients; ++i) {
    clients[i].Send(Post("/filter", std::to_string(i)));
  }
  for (std::size_t i = 0; i < kClients; ++i) {
    EXPECT_EQ(clients[i].Read().body, std::to_string(i));
  }
  EXPECT_EQ(server->stats().open_connections, kClients);
  clients.clear();
  EXPECT_TRUE(NobodyConnected(*server));
}

TEST(ExtenderProtocol, Case44_ExceptionOfAHandlerIsAnInternalError) {
  const auto server = StartServer();
  RawClient client = ConnectTo(*server);
  client.Send(Post("/throw", "{}") + Post("/filter", "next"));
  const RawResponse response = client.Read();
  EXPECT_EQ(response.status, 500);
  EXPECT_EQ(response.body, R"({"error":"internal error"})") << "the exception's text stays inside";
  EXPECT_EQ(client.Read().body, "next");
  EXPECT_EQ(server->stats().handler_exceptions, 1u);
}

}  // namespace
}  // namespace berth::http::http_server_test
