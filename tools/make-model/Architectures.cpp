//===- Architectures.cpp - Shapes of well-known networks ------------------===//

#include "GraphBuilder.h"

namespace ajour::tools {

namespace {

constexpr int64_t numClasses = 1000;

/// Howard et al. 2017, "MobileNets", table 1.
void buildMobileNetV1(GraphBuilder &b, int64_t size) {
  Value x = b.conv(b.input(3, size, size), {32, 3, 2, 1, 1, Activation::Relu6});
  const int64_t blocks[][2] = {{64, 1},  {128, 2}, {128, 1}, {256, 2}, {256, 1},  {512, 2}, {512, 1},
                               {512, 1}, {512, 1}, {512, 1}, {512, 1}, {1024, 2}, {1024, 1}};
  for (const auto &[channels, stride] : blocks) {
    x = b.conv(x, {x.channels, 3, stride, 1, x.channels, Activation::Relu6});
    x = b.conv(x, {channels, 1, 1, 0, 1, Activation::Relu6});
  }
  b.output(b.linear(b.flatten(b.globalAveragePool(x)), numClasses, Activation::None));
}

/// Sandler et al. 2018, "MobileNetV2", table 2.
void buildMobileNetV2(GraphBuilder &b, int64_t size) {
  Value x = b.conv(b.input(3, size, size), {32, 3, 2, 1, 1, Activation::Relu6});
  struct Stage {
    int64_t expansion, channels, repeats, stride;
  };
  for (Stage stage : {Stage{1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 3, 2}, {6, 64, 4, 2}, {6, 96, 3, 1}, {6, 160, 3, 2},
                      {6, 320, 1, 1}}) {
    for (int64_t i = 0; i < stage.repeats; ++i) {
      int64_t stride = i == 0 ? stage.stride : 1, hidden = x.channels * stage.expansion;
      Value y = x;
      if (stage.expansion != 1)
        y = b.conv(y, {hidden, 1, 1, 0, 1, Activation::Relu6});
      y = b.conv(y, {hidden, 3, stride, 1, hidden, Activation::Relu6});
      y = b.conv(y, {stage.channels, 1, 1, 0, 1, Activation::None});
      x = stride == 1 && x.channels == stage.channels ? b.add(x, y, Activation::None) : y;
    }
  }
  x = b.conv(x, {1280, 1, 1, 0, 1, Activation::Relu6});
  b.output(b.linear(b.flatten(b.globalAveragePool(x)), numClasses, Activation::None));
}

/// He et al. 2015, "Deep residual learning", table 1; the stride of a bottleneck is in its 3x3 convolution.
void buildResNet(GraphBuilder &b, int64_t size, const std::vector<int64_t> &repeats, bool bottleneck) {
  Value x = b.conv(b.input(3, size, size), {64, 7, 2, 3, 1, Activation::Relu});
  x = b.maxPool(x, 3, 2, 1);
  int64_t width = 64;
  for (size_t stage = 0; stage < repeats.size(); ++stage, width *= 2) {
    for (int64_t i = 0; i < repeats[stage]; ++i) {
      int64_t stride = stage > 0 && i == 0 ? 2 : 1, channels = bottleneck ? width * 4 : width;
      Value y = x;
      if (bottleneck) {
        y = b.conv(y, {width, 1, 1, 0});
        y = b.conv(y, {width, 3, stride, 1});
        y = b.conv(y, {channels, 1, 1, 0, 1, Activation::None});
      } else {
        y = b.conv(y, {width, 3, stride, 1});
        y = b.conv(y, {channels, 3, 1, 1, 1, Activation::None});
      }
      if (stride != 1 || x.channels != channels)
        x = b.conv(x, {channels, 1, stride, 0, 1, Activation::None});
      x = b.add(y, x, Activation::Relu);
    }
  }
  b.output(b.linear(b.flatten(b.globalAveragePool(x)), numClasses, Activation::None));
}

/// Simonyan and Zisserman 2014, "Very deep convolutional networks", configuration D.
void buildVgg16(GraphBuilder &b, int64_t size) {
  Value x = b.input(3, size, size);
  const int64_t blocks[][2] = {{64, 2}, {128, 2}, {256, 3}, {512, 3}, {512, 3}};
  for (const auto &[channels, repeats] : blocks) {
    for (int64_t i = 0; i < repeats; ++i)
      x = b.conv(x, {channels, 3, 1, 1});
    x = b.maxPool(x, 2, 2, 0);
  }
  x = b.linear(b.flatten(x), 4096, Activation::Relu);
  x = b.linear(x, 4096, Activation::Relu);
  b.output(b.linear(x, numClasses, Activation::None));
}

/// Tan and Le 2019, "EfficientNet", table 1.
void buildEfficientNetB0(GraphBuilder &b, int64_t size) {
  Value x = b.conv(b.input(3, size, size), {32, 3, 2, 1, 1, Activation::Silu});
  struct Stage {
    int64_t expansion, channels, repeats, stride, kernel;
  };
  for (Stage stage : {Stage{1, 16, 1, 1, 3}, {6, 24, 2, 2, 3}, {6, 40, 2, 2, 5}, {6, 80, 3, 2, 3}, {6, 112, 3, 1, 5},
                      {6, 192, 4, 2, 5}, {6, 320, 1, 1, 3}}) {
    for (int64_t i = 0; i < stage.repeats; ++i) {
      int64_t stride = i == 0 ? stage.stride : 1, hidden = x.channels * stage.expansion;
      Value y = x;
      if (stage.expansion != 1)
        y = b.conv(y, {hidden, 1, 1, 0, 1, Activation::Silu});
      y = b.conv(y, {hidden, stage.kernel, stride, stage.kernel / 2, hidden, Activation::Silu});
      y = b.squeezeExcite(y, x.channels / 4, Activation::Silu, Activation::Sigmoid);
      y = b.conv(y, {stage.channels, 1, 1, 0, 1, Activation::None});
      x = stride == 1 && x.channels == stage.channels ? b.add(x, y, Activation::None) : y;
    }
  }
  x = b.conv(x, {1280, 1, 1, 0, 1, Activation::Silu});
  b.output(b.linear(b.flatten(b.globalAveragePool(x)), numClasses, Activation::None));
}

/// Howard et al. 2019, "Searching for MobileNetV3", table 1 (large).
void buildMobileNetV3(GraphBuilder &b, int64_t size) {
  constexpr Activation relu = Activation::Relu, swish = Activation::HardSwish;
  Value x = b.conv(b.input(3, size, size), {16, 3, 2, 1, 1, swish});
  struct Block {
    int64_t kernel, hidden, channels, squeezed; ///< squeezed: 0 without squeeze and excitation
    Activation activation;
    int64_t stride;
  };
  for (Block block : {Block{3, 16, 16, 0, relu, 1}, {3, 64, 24, 0, relu, 2}, {3, 72, 24, 0, relu, 1},
                      {5, 72, 40, 24, relu, 2}, {5, 120, 40, 32, relu, 1}, {5, 120, 40, 32, relu, 1},
                      {3, 240, 80, 0, swish, 2}, {3, 200, 80, 0, swish, 1}, {3, 184, 80, 0, swish, 1},
                      {3, 184, 80, 0, swish, 1}, {3, 480, 112, 120, swish, 1}, {3, 672, 112, 168, swish, 1},
                      {5, 672, 160, 168, swish, 2}, {5, 960, 160, 240, swish, 1}, {5, 960, 160, 240, swish, 1}}) {
    Value y = x;
    if (block.hidden != x.channels)
      y = b.conv(y, {block.hidden, 1, 1, 0, 1, block.activation});
    y = b.conv(y, {block.hidden, block.kernel, block.stride, block.kernel / 2, block.hidden, block.activation});
    if (block.squeezed != 0)
      y = b.squeezeExcite(y, block.squeezed, relu, Activation::HardSigmoid);
    y = b.conv(y, {block.channels, 1, 1, 0, 1, Activation::None});
    x = block.stride == 1 && x.channels == block.channels ? b.add(x, y, Activation::None) : y;
  }
  x = b.conv(x, {960, 1, 1, 0, 1, swish});
  x = b.linear(b.flatten(b.globalAveragePool(x)), 1280, swish);
  b.output(b.linear(x, numClasses, Activation::None));
}

/// Iandola et al. 2016, "SqueezeNet", in the authors' version 1.1.
void buildSqueezeNet(GraphBuilder &b, int64_t size) {
  auto fire = [&](const Value &x, int64_t squeezed, int64_t expanded) {
    Value y = b.conv(x, {squeezed, 1, 1, 0});
    return b.concat({b.conv(y, {expanded, 1, 1, 0}), b.conv(y, {expanded, 3, 1, 1})});
  };
  Value x = b.maxPool(b.conv(b.input(3, size, size), {64, 3, 2, 0}), 3, 2, 0);
  x = b.maxPool(fire(fire(x, 16, 64), 16, 64), 3, 2, 0);
  x = b.maxPool(fire(fire(x, 32, 128), 32, 128), 3, 2, 0);
  x = fire(fire(fire(fire(x, 48, 192), 48, 192), 64, 256), 64, 256);
  b.output(b.flatten(b.globalAveragePool(b.conv(x, {numClasses, 1, 1, 0}))));
}

/// One product, 128 x 4096 by 4096 x 4096, as a convolution: what a linear layer of a language model has with 128 tokens. The
/// size of the picture is fixed.
void buildProduct(GraphBuilder &b, int64_t) {
  b.output(b.flatten(b.conv(b.input(4096, 8, 16), {4096, 1, 1, 0, 1, Activation::None})));
}

/// Two layers of 1024 units and a classifier, one frame at a time: what RTMobile prunes for speech (Dong et al. 2020).
void buildRecurrent(GraphBuilder &b, const char *type, int64_t gates) {
  constexpr int64_t units = 1024;
  Value x = b.recurrent(type, gates, b.recurrent(type, gates, b.frame(units), units), units);
  b.output(b.linear(b.flatten(x), 40, Activation::None));
}

struct Architecture {
  const char *name;
  void (*build)(GraphBuilder &builder, int64_t size);
};

const Architecture architectures[] = {
    {"efficientnet_b0", buildEfficientNetB0},
    {"gru_2x1024", [](GraphBuilder &b, int64_t) { buildRecurrent(b, "GRU", 3); }},
    {"lstm_2x1024", [](GraphBuilder &b, int64_t) { buildRecurrent(b, "LSTM", 4); }},
    {"mobilenet_v1", buildMobileNetV1},
    {"mobilenet_v2", buildMobileNetV2},
    {"mobilenet_v3_large", buildMobileNetV3},
    {"resnet18", [](GraphBuilder &b, int64_t size) { buildResNet(b, size, {2, 2, 2, 2}, false); }},
    {"resnet50", [](GraphBuilder &b, int64_t size) { buildResNet(b, size, {3, 4, 6, 3}, true); }},
    {"product_128x4096x4096", buildProduct},
    {"squeezenet1_1", buildSqueezeNet},
    {"vgg16", buildVgg16},
};

} // namespace

std::vector<std::string> architectureNames() {
  std::vector<std::string> names;
  for (const Architecture &architecture : architectures)
    names.push_back(architecture.name);
  return names;
}

void buildArchitecture(const std::string &name, GraphBuilder &builder, int64_t size) {
  for (const Architecture &architecture : architectures)
    if (name == architecture.name)
      architecture.build(builder, size);
}

} // namespace ajour::tools
