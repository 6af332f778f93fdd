// SPDX-License-Identifier: Apache-2.0
#include "server/kube/client/http_api_client.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <boost/asio.hpp>

#include "test/support/api_client_fixture.h"
#include "test/support/http_fixture.h"

namespace berth::kube::http_api_client_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::Echo;
using test::Eventually;
using test::Identity;
using test::kPatience;
using test::MakeIdentity;
using test::StreamReply;
using test::StreamRequest;
using test::StreamServer;

using HttpApiClientTest = test::ApiClientTest;

TEST_F(HttpApiClientTest, SendsTheRequestAsGiven) {
  Serve(Echo);
  access_.token = "secret";
  const auto client = Client();
  ApiRequest request{"PATCH", "/api/v1/pods/a?x=%2F", R"({"a":1})", "application/merge-patch+json"};
  const auto answer = client->Send(request);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->status, 200);
  EXPECT_TRUE(answer->body.starts_with(
      R"(PATCH /api/v1/pods/a?x=%2F|{"a":1}|application/merge-patch+json|berth/)"))
      << answer->body;
  EXPECT_TRUE(answer->body.ends_with("|secret|")) << answer->body;
  EXPECT_EQ(client->stats().answers[3][2], 1U);
}

TEST_F(HttpApiClientTest, KeepsItsConnectionForLaterRequests) {
  Serve(Echo);
  const auto client = Client();
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(Get(*client).starts_with("200 GET /x|"));
  EXPECT_LT(server_->accepted(), 10);  // one, if the library had given it back each time by then
  EXPECT_EQ(client->stats().answers[0][2], 20U);
  EXPECT_EQ(client->stats().in_flight, 0U);
}

TEST_F(HttpApiClientTest, SpeaksPlainHttpAndUnderAPath) {
  Serve(Echo);
  server_ = std::make_unique<StreamServer>(test::StreamServerOptions{}, Echo);
  access_.server = "http://localhost:" + std::to_string(server_->port()) + "/k8s/";
  EXPECT_TRUE(Get().starts_with("200 GET /k8s/x|")) << Get();
}

TEST_F(HttpApiClientTest, ChecksTheNameByAddressAndByDns) {
  Serve(Echo);
  EXPECT_TRUE(Get().starts_with("200 "));
  access_.server = "https://localhost:" + std::to_string(server_->port());
  EXPECT_TRUE(Get().starts_with("200 ")) << Get();

  access_.tls_server_name = "kubernetes";
  EXPECT_TRUE(Get().starts_with("200 ")) << Get();
  access_.tls_server_name = "other";
  EXPECT_NE(Get().find("hostname mismatch"), std::string::npos) << Get();
}

bool HasIpv6Loopback() {
  boost::asio::io_context io;
  boost::system::error_code problem;
  boost::asio::ip::tcp::acceptor acceptor(io);
  acceptor.open(boost::asio::ip::tcp::v6(), problem);
  if (!problem) acceptor.bind({boost::asio::ip::address_v6::loopback(), 0}, problem);
  return !problem;
}

TEST_F(HttpApiClientTest, SpeaksToAnIpv6AddressAndChecksItInTheCertificate) {
  if (!HasIpv6Loopback()) GTEST_SKIP() << "there is no [::1] here";
  Identity identity = MakeIdentity("apiserver", &ca_, "IP:::1,DNS:kubernetes");
  std::string host;
  const StreamServer server({&identity, &client_ca_, true},
                            [&host](const StreamRequest& request, StreamReply& reply) {
                              host = request.host;
                              Echo(request, reply);
                            });
  access_.ca_pem = CertificateText(ca_);
  access_.server = "https://[::1]:" + std::to_string(server.port());
  EXPECT_TRUE(Get().starts_with("200 GET /x|")) << Get();
  EXPECT_EQ(host, "[::1]:" + std::to_string(server.port()));
  access_.server = "https://[0:0::1]:" + std::to_string(server.port()) + "/k8s/";
  EXPECT_TRUE(Get().starts_with("200 GET /k8s/x|")) << "another way to write it: " << Get();
  access_.tls_server_name = "kubernetes";
  EXPECT_TRUE(Get().starts_with("200 ")) << Get();
  access_.tls_server_name = "other";
  EXPECT_NE(Get().find("hostname mismatch"), std::string::npos) << Get();
}

TEST_F(HttpApiClientTest, RefusesACertificateForAnotherIpv6Address) {
  if (!HasIpv6Loopback()) GTEST_SKIP() << "there is no [::1] here";
  Identity identity = MakeIdentity("apiserver", &ca_, "IP:fd00::1,DNS:localhost,IP:127.0.0.1");
  const StreamServer server({&identity, nullptr, true}, Echo);
  access_.ca_pem = CertificateText(ca_);
  access_.server = "https://[::1]:" + std::to_string(server.port());
  EXPECT_NE(Get().find("IP address mismatch"), std::string::npos) << Get();
  access_.ca_pem = CertificateText(client_ca_);
  EXPECT_FALSE(Get().starts_with("200 ")) << "of an authority that is not trusted";
}

TEST_F(HttpApiClientTest, RefusesACertificateForAnotherNameOrOnlyACommonName) {
  for (const char* names : {"DNS:elsewhere,IP:10.0.0.1", ""}) {
    identity_ = MakeIdentity("localhost", &ca_, names);
    Serve(Echo);
    access_.server = "https://localhost:" + std::to_string(server_->port());
    const auto client = Client();
    EXPECT_NE(Get(*client).find("hostname mismatch"), std::string::npos) << Get(*client);
    access_.server = "https://127.0.0.1:" + std::to_string(server_->port());
    EXPECT_NE(Get().find("IP address mismatch"), std::string::npos) << Get();
    EXPECT_GT(client->stats().failures, 0U);
  }
}

TEST_F(HttpApiClientTest, TrustsItsCaAlone) {
  Serve(Echo);
  access_.ca_pem = CertificateText(client_ca_);
  EXPECT_NE(Get().find("unable to get local issuer certificate"), std::string::npos) << Get();
  access_.ca_pem = "";  // whom the system trusts
  EXPECT_NE(Get().find("certificate"), std::string::npos) << Get();
  access_.ca_pem = CertificateText(client_ca_) + CertificateText(ca_);
  EXPECT_TRUE(Get().starts_with("200 ")) << Get();
  access_.ca_pem = "";
  access_.insecure_skip_tls_verify = true;
  EXPECT_TRUE(Get().starts_with("200 ")) << Get();
}

TEST_F(HttpApiClientTest, ShowsItsCertificate) {
  Serve(Echo);
  const Identity berth = MakeIdentity("system:berth", &client_ca_);
  access_.client_certificate_pem = CertificateText(berth);
  access_.client_key_pem = KeyText(berth);
  EXPECT_TRUE(Get().ends_with("|system:berth")) << Get();

  const Identity stranger = MakeIdentity("system:berth", &ca_);
  access_.client_certificate_pem = CertificateText(stranger);
  access_.client_key_pem = KeyText(stranger);
  EXPECT_FALSE(Get().starts_with("200 ")) << Get();
}

TEST_F(HttpApiClientTest, NamesWhatItCannotUse) {
  Serve(Echo);
  const Identity one = MakeIdentity("one", &client_ca_), other = MakeIdentity("other", &client_ca_);
  const ClusterAccess good = access_;
  access_.ca_pem = "no certificate";
  EXPECT_TRUE(CreateError().starts_with("certificate-authority: want PEM certificates"));
  access_.ca_pem = good.ca_pem + good.ca_pem.substr(0, good.ca_pem.size() / 2);
  EXPECT_TRUE(CreateError().starts_with("certificate-authority: want PEM")) << CreateError();
  access_ = good;
  access_.client_certificate_pem = CertificateText(one);
  access_.client_key_pem = "no key";
  EXPECT_TRUE(CreateError().starts_with("client-key: want an unencrypted PEM key"));
  access_.client_key_pem = KeyText(other);
  EXPECT_TRUE(CreateError().starts_with("client-key: want the key of the client-certificate"));
  access_ = good;
  for (const char* server : {"https://[fe80::1%25eth0]:6443", "https://[::g]:6443", "https://[]",
                             "ftp://a", "https://", "", "https://a b"}) {
    access_.server = server;
    EXPECT_TRUE(CreateError().starts_with("server: ")) << CreateError();
  }
  access_ = good;
  access_.token_file = "/nowhere/token";
  EXPECT_TRUE(CreateError().starts_with("token_file: /nowhere/token: ")) << CreateError();
  access_ = good;
  ApiRequest request;
  request.path = "/a b";
  const auto answer = Client()->Send(request);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Errc::kInvalidArgument);
}

TEST_F(HttpApiClientTest, FollowsATokenThatRotates) {
  Serve(Echo);
  access_.token_file = folder_.WriteText("token", "one\n");
  const auto client = Client();
  EXPECT_TRUE(Get(*client).ends_with("|one|"));
  folder_.WriteText("token", "two\n");
  EXPECT_TRUE(Eventually([&] { return Get(*client).ends_with("|two|"); }));
  folder_.WriteText("token", "");  // being written
  EXPECT_TRUE(Get(*client).ends_with("|two|"));
}

TEST_F(HttpApiClientTest, ReadsTheTokenAgainAfterA401) {
  access_.token_file = folder_.WriteText("token", "one");
  int requests = 0;
  Serve([&](const StreamRequest& request, StreamReply& reply) {
    // The token is replaced while the second request is on its way.
    if (++requests == 2) folder_.WriteText("token", "two");
    if (request.token == (requests == 1 ? "one" : "two")) return Echo(request, reply);
    reply.Whole(401, "{}");
  });
  const auto client = Client();
  EXPECT_TRUE(Get(*client).ends_with("|one|"));
  EXPECT_TRUE(Get(*client).ends_with("|two|"));
  EXPECT_EQ(requests, 3);
  EXPECT_EQ(client->stats().answers[0][4], 1U);
}

TEST_F(HttpApiClientTest, ReturnsA401ThatNoOtherTokenCanHelp) {
  std::atomic<int> requests = 0;
  Serve([&](const StreamRequest&, StreamReply& reply) {
    ++requests;
    reply.Whole(401, "{}");
  });
  access_.token_file = folder_.WriteText("token", "one");
  EXPECT_EQ(Get(), "401 {}");
  EXPECT_EQ(requests, 1);
}

TEST_F(HttpApiClientTest, HandsStatusAndRetryAfterOn) {
  Serve([](const StreamRequest&, StreamReply& reply) {
    reply.Whole(429, "slowly", "Retry-After: 7\r\n");
  });
  const auto client = Client();
  ApiRequest request;
  request.path = "/x";
  const auto answer = client->Send(request);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->status, 429);
  EXPECT_EQ(answer->retry_after, Duration(seconds(7)));
  const auto streamed = client->Stream("/x", kPatience, {}, [](std::string_view) {
    ADD_FAILURE() << "the body of a 429 is no stream";
    return true;
  });
  ASSERT_TRUE(streamed);
  EXPECT_EQ(streamed->body, "slowly");
  EXPECT_EQ(streamed->retry_after, Duration(seconds(7)));
}

TEST_F(HttpApiClientTest, FollowsNoRedirect) {
  Serve([](const StreamRequest& request, StreamReply& reply) {
    reply.Whole(request.target == "/x" ? 302 : 200, "", "Location: /elsewhere\r\n");
  });
  access_.token = "secret";
  EXPECT_EQ(Get(), "302 ");
}

TEST_F(HttpApiClientTest, GivesUpAfterTheTimeoutOfTheRequest) {
  Serve([](const StreamRequest& request, StreamReply& reply) {
    if (request.target == "/drip") {
      reply.BeginChunks();
      while (reply.Chunk("x")) std::this_thread::sleep_for(milliseconds(20));
    }
    reply.Hang();
  });
  const auto client = Client();
  for (const char* path : {"/hang", "/drip"}) {
    ApiRequest request;
    request.path = path;
    request.timeout = milliseconds(300);
    const auto answer = client->Send(request);
    ASSERT_FALSE(answer) << path;
    EXPECT_EQ(answer.error().code, Errc::kUnavailable);
  }
  EXPECT_EQ(client->stats().failures, 2U);
  EXPECT_TRUE(Eventually([&] { return server_->open_connections() == 0; }));
}

TEST_F(HttpApiClientTest, SaysSoWhenNobodyListens) {
  Serve(Echo);
  server_.reset();
  EXPECT_TRUE(Get().starts_with("GET /x: ")) << Get();
  EXPECT_FALSE(Get().starts_with("200"));
}

TEST_F(HttpApiClientTest, ServesManyThreadsAtATime) {
  Serve(Echo);
  const auto client = Client();
  std::vector<std::jthread> threads;
  std::atomic<int> good = 0;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) good += Get(*client).starts_with("200 GET /x|") ? 1 : 0;
    });
  }
  threads.clear();
  EXPECT_EQ(good, 160);
  EXPECT_EQ(client->stats().answers[0][2], 160U);
}

}  // namespace
}  // namespace berth::kube::http_api_client_test
