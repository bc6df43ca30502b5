// The C++ wrapper.
#include <cstring>

#include "Fixture.h"
#include "ajour/ajour.hpp"

using namespace ajour::test;

TEST(Wrapper, LoadsAndRuns) {
  const std::string bytes = makeAffine().bytes();
  ajour::Result<ajour::Model> model = ajour::Model::load(bytes.data(), bytes.size());
  ASSERT_TRUE(model) << model.message();
  ASSERT_EQ(model->inputs().size(), 2u);
  EXPECT_STREQ(model->inputs()[1].name, "y");
  EXPECT_STREQ(model->outputs()[0].name, "z");
  EXPECT_EQ(model->memory()->weight_bytes, 16u);
  ajour::Result<ajour::Session> session = model->createSession();
  ASSERT_TRUE(session) << session.message();
  std::vector<float> x = ramp(2, 1, 1);
  for (uint32_t i = 0; i < 2; ++i)
    ASSERT_TRUE(session->setInput(i, x.data(), {2, 4}));
  ASSERT_TRUE(session->run());
  ajour::Result<ajour_tensor_view> z = session->output(0);
  ASSERT_TRUE(z);
  std::vector<float> expected = affine(x, x);
  ASSERT_EQ(z->bytes, expected.size() * 4);
  EXPECT_EQ(std::memcmp(z->data, expected.data(), z->bytes), 0);
  EXPECT_NE(session->profile().find("Add_0"), std::string::npos);
}

TEST(Wrapper, CarriesMessages) {
  ajour::Result<ajour::Model> model = ajour::Model::load(std::string("/no/such/model.ajour"));
  EXPECT_FALSE(model);
  EXPECT_EQ(model.code(), AJOUR_IO);
  EXPECT_NE(model.message().find("/no/such/model.ajour"), std::string::npos);
}
