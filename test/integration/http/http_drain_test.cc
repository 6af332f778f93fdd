// SPDX-License-Identifier: Apache-2.0
//
// The server goes away: a client that has sent a request still gets an answer.
#include <atomic>
#include <future>
#include <latch>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "server/http/http_server.h"
#include "test/support/http_fixture.h"

namespace berth::http::http_drain_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::ConnectTo;
using test::LocalOptions;
using test::Post;
using test::RawClient;
using test::RawResponse;
using test::StartServer;

constexpr seconds kLongGrace{60};  // a test that waits for it fails by its time limit

// True once a new client is not let in any more.
bool RefusesClients(std::uint16_t port) {
  return test::Eventually([port] { return !RawClient("127.0.0.1", port).connected(); });
}

TEST(ExtenderProtocol, Case41_RequestInFlightIsAnsweredOnShutdown) {
  std::latch entered(1);
  std::latch may_leave(1);
  HttpServerOptions options = LocalOptions();
  const auto server = StartServer(options, [&](HttpRequest&) {
    entered.count_down();
    may_leave.wait();
    HttpResponse response;
    response.body = "done";
    return response;
  });
  RawClient client = ConnectTo(*server);
  client.Send(Post("/filter", "{}"));
  entered.wait();
  auto drained = std::async(std::launch::async, [&] { server->Drain(kLongGrace); });
  EXPECT_TRUE(RefusesClients(server->port()));
  may_leave.count_down();
  const RawResponse response = client.Read();
  EXPECT_EQ(response.body, "done");
  EXPECT_TRUE(client.ReachesEnd());
  client.FinishSending();
  drained.wait();
  EXPECT_EQ(server->stats().open_connections, 0u);
}

TEST(ExtenderProtocol, Case41_IdleConnectionIsServedOnceMoreOnShutdown) {
  const auto server = StartServer();
  RawClient client = ConnectTo(*server);
  client.Send(Post("/filter", "1"));
  EXPECT_EQ(client.Read().Field("Connection"), "");
  auto drained = std::async(std::launch::async, [&] { server->Drain(kLongGrace); });
  EXPECT_TRUE(RefusesClients(server->port()));
  client.Send(Post("/filter", "2"));
  const RawResponse response = client.Read();
  EXPECT_EQ(response.body, "2");
  EXPECT_EQ(response.Field("Connection"), "close");
  EXPECT_TRUE(client.ReachesEnd());
  client.FinishSending();
  drained.wait();
}

TEST(HttpServer, DrainsAtOnceWithoutConnections) {
  const auto server = StartServer();
  server->Drain(kLongGrace);
  EXPECT_TRUE(RefusesClients(server->port()));
}

TEST(HttpServer, ClosesIdleConnectionsAfterTheGrace) {
  const auto server = StartServer();
  RawClient client = ConnectTo(*server);
  client.Send(Post("/filter", "1"));
  EXPECT_EQ(client.Read().status, 200);
  server->Drain(milliseconds(100));
  EXPECT_TRUE(client.ReachesEnd());
  EXPECT_EQ(server->stats().open_connections, 0u);
}

TEST(HttpServer, CutsWhoIsNotDoneAfterTheSecondGrace) {
  const auto server = StartServer();
  RawClient client = ConnectTo(*server);
  client.Send(test::Request("POST", "/filter", "Content-Length: 10\r\n") + "half");
  EXPECT_TRUE(test::Eventually([&] { return server->stats().open_connections == 1; }));
  server->Drain(milliseconds(100));
  EXPECT_TRUE(client.ReachesEnd());
  EXPECT_EQ(server->stats().open_connections, 0u);
}

TEST(HttpServer, ServesWhoHasConnectedButIsNotAcceptedYet) {
  std::latch entered(1);
  std::latch may_leave(1);
  HttpServerOptions options = LocalOptions();
  options.threads = 1;
  const auto server = StartServer(options, [&](HttpRequest& request) {
    if (request.path == "/block") {
      entered.count_down();
      may_leave.wait();
    }
    return HttpResponse();
  });
  RawClient blocks = ConnectTo(*server);
  blocks.Send(Post("/block", ""));
  entered.wait();  // the only thread is busy now
  RawClient waits = ConnectTo(*server);
  waits.Send(Post("/filter", ""));
  auto drained = std::async(std::launch::async, [&] { server->Drain(kLongGrace); });
  EXPECT_TRUE(RefusesClients(server->port()));
  may_leave.count_down();
  EXPECT_EQ(waits.Read().status, 200);
  EXPECT_EQ(blocks.Read().status, 200);
  EXPECT_TRUE(waits.ReachesEnd());
  EXPECT_TRUE(blocks.ReachesEnd());
  waits.FinishSending();
  blocks.FinishSending();
  drained.wait();
}

TEST(HttpServer, LosesNoRequestWhenDrainedUnderLoad) {
  constexpr int kClients = 16;
  const auto server = StartServer();
  std::atomic<int> warm{0};
  std::atomic<int> lost{0};
  std::atomic<int> told_to_close{0};
  std::vector<std::thread> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.emplace_back([&] {
      RawClient client = ConnectTo(*server);
      const std::string body(20'000, 'x');
      for (int n = 0;; ++n) {
        client.Send(Post("/filter", body));
        const RawResponse response = client.Read();
        warm += n == 10 ? 1 : 0;
        if (response.status != 200 || response.body != body) {
          ++lost;
          return;
        }
        if (response.Field("Connection") == "close") {
          ++told_to_close;
          return;
        }
      }
    });
  }
  EXPECT_TRUE(test::Eventually([&] { return warm == kClients; }));
  server->Drain(kLongGrace);
  for (std::thread& client : clients) {
    client.join();
  }
  EXPECT_EQ(lost, 0);
  EXPECT_EQ(told_to_close, kClients);
}

TEST(HttpServer, StopsWithClientsInEveryState) {
  std::vector<RawClient> clients;
  {
    const auto server = StartServer();
    for (const std::string& bytes :
         {std::string(), std::string("POST /fil"), Post("/filter", "x"),
          test::Request("POST", "/filter", "Content-Length: 9\r\n") + "half",
          test::Request("POST", "/filter", "Transfer-Encoding: chunked\r\n") + "5\r\nab"}) {
      clients.push_back(ConnectTo(*server));
      clients.back().Send(bytes);
    }
  }
  for (RawClient& client : clients) {
    EXPECT_EQ(client.ReadToEnd().find("<timeout>"), std::string::npos);
  }
}

}  // namespace
}  // namespace berth::http::http_drain_test
