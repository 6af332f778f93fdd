// SPDX-License-Identifier: Apache-2.0
//
// Answers that come later: from another thread, while the I/O thread serves everybody else.
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "server/http/http_server.h"
#include "test/support/http_fixture.h"

namespace berth::http::http_later_test {
namespace {

using test::ConnectTo;
using test::LocalOptions;
using test::Post;
using test::RawClient;
using test::StartServer;

constexpr std::string_view kGet = "GET /healthz HTTP/1.1\r\nHost: berth\r\n\r\n";

// Keeps the replies of POST until a test gives them; GET is answered at once.
class Parked {
 public:
  HttpHandler Handler() {
    return [this](HttpRequest& request) {
      HttpResponse response;
      if (request.method == "GET") return response;
      response.later = [this, body = request.body.str()](const Reply& reply) {
        if (body == "throw") throw std::runtime_error("not for strangers");
        if (body == "drop") return;
        const std::lock_guard lock(mutex_);
        replies_.push_back(reply);
      };
      return response;
    };
  }

  // Waits until so many are parked.
  std::vector<Reply> Take(std::size_t count) {
    EXPECT_TRUE(test::Eventually([&] {
      const std::lock_guard lock(mutex_);
      return replies_.size() >= count;
    }));
    const std::lock_guard lock(mutex_);
    return std::exchange(replies_, {});
  }

  static HttpResponse Saying(std::string text) {
    HttpResponse response;
    response.body = std::move(text);
    return response;
  }

 private:
  std::mutex mutex_;
  std::vector<Reply> replies_;
};

class HttpLater : public testing::Test {
 protected:
  HttpLater() {
    HttpServerOptions options = LocalOptions();
    options.threads = 1;
    server_ = StartServer(options, parked_.Handler());
  }
  Parked parked_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpLater, TellsThatAClientHasGoneWhileItsAnswerIsMade) {
  RawClient stays = ConnectTo(*server_);
  stays.Send(Post("/bind", "stays"));
  const std::vector<Reply> staying = parked_.Take(1);
  auto leaves = std::make_unique<RawClient>(ConnectTo(*server_));
  leaves->Send(Post("/bind", "leaves"));
  const std::vector<Reply> leaving = parked_.Take(1);
  EXPECT_TRUE(leaving[0].waits());
  leaves.reset();
  EXPECT_TRUE(test::Eventually([&] { return !leaving[0].waits(); }));
  EXPECT_TRUE(staying[0].waits());
  leaving[0](Parked::Saying("into the void"));
  staying[0](Parked::Saying("here"));
  EXPECT_EQ(stays.Read().body, "here");
}

TEST_F(HttpLater, OneThreadHoldsManyRequestsAndServesOthersMeanwhile) {
  std::vector<RawClient> held;
  for (int i = 0; i < 40; ++i) {
    held.push_back(ConnectTo(*server_));
    held.back().Send(Post("/bind", "{}"));
  }
  std::vector<Reply> replies = parked_.Take(40);
  ASSERT_EQ(replies.size(), 40u);
  RawClient other = ConnectTo(*server_);
  other.Send(kGet);
  EXPECT_EQ(other.Read().status, 200);
  for (const Reply& reply : replies) reply(Parked::Saying("bound"));
  for (RawClient& client : held) EXPECT_EQ(client.Read().body, "bound");
}

TEST_F(HttpLater, TheConnectionGoesOnAfterwards) {
  RawClient client = ConnectTo(*server_);
  for (const char* text : {"one", "two", "three"}) {
    client.Send(Post("/bind", "{}"));
    std::thread([&] { parked_.Take(1).at(0)(Parked::Saying(text)); }).join();
    EXPECT_EQ(client.Read().body, text);
  }
  EXPECT_EQ(server_->stats().accepted, 1u);
}

TEST_F(HttpLater, OnlyTheFirstAnswerCounts) {
  RawClient client = ConnectTo(*server_);
  client.Send(Post("/bind", "{}"));
  const Reply reply = parked_.Take(1).at(0);
  reply(Parked::Saying("first"));
  reply(Parked::Saying("second"));
  EXPECT_EQ(client.Read().body, "first");
  client.Send(kGet);
  EXPECT_EQ(client.Read().body, "");
}

TEST_F(HttpLater, AReplyThatNobodyGivesIsA500) {
  for (const char* how : {"drop", "throw"}) {
    RawClient client = ConnectTo(*server_);
    client.Send(Post("/bind", how));
    EXPECT_EQ(client.Read().status, 500) << how;
  }
  EXPECT_EQ(server_->stats().handler_exceptions, 1u);
}

TEST_F(HttpLater, AClientThatLeftMissesItsAnswerAndNobodyElseDoes) {
  {
    RawClient gone = ConnectTo(*server_);
    gone.Send(Post("/bind", "{}"));
    parked_.Take(1).at(0)(Parked::Saying("to nobody"));
  }
  RawClient client = ConnectTo(*server_);
  client.Send(Post("/bind", "{}"));
  parked_.Take(1).at(0)(Parked::Saying("bound"));
  EXPECT_EQ(client.Read().body, "bound");
}

TEST_F(HttpLater, ADrainWaitsForAnswersThatAreStillToCome) {
  RawClient client = ConnectTo(*server_);
  client.Send(Post("/bind", "{}"));
  std::vector<Reply> replies = parked_.Take(1);
  std::thread drain([this] { server_->Drain(std::chrono::seconds(30)); });
  replies.at(0)(Parked::Saying("bound"));
  EXPECT_EQ(client.Read().body, "bound");
  replies.clear();
  client.FinishSending();
  drain.join();
  EXPECT_EQ(server_->stats().open_connections, 0u);
}

}  // namespace
}  // namespace berth::http::http_later_test
