//===- Lowering.h - one dispatch as loops ------------------------*- C++ -*-===//
#ifndef AJOUR_LIB_CONVERSION_LOOPS_LOWERING_H
#define AJOUR_LIB_CONVERSION_LOOPS_LOWERING_H

#include "Emitter.h"
#include "Factors.h"
#include "ajour/Conversion/Dispatch.h"
#include "ajour/Kernels/Kernels.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace ajour::loops {

/// How a 3x3 convolution is computed by Winograd's method.
struct WinogradPlan {
  int64_t t;              ///< output rows and columns of a tile
  int64_t tilesY, tilesX; ///< of an image
  int64_t blockTiles;     ///< of one work item
  int64_t panelsPerItem;
  const ajour_kernel_row *input, *output; ///< the transforms
};

/// Where its transformed input (in scratch) and its products lie. Strides are in floats.
struct WinogradLayout {
  int64_t channels, lda, inputStride, productStride;
  mlir::Value products;
};

/// How weights that keep their few bits become dense panels in scratch: a kernel unpacks blocks of 16 columns.
struct UnpackPlan {
  mlir::Operation *form; ///< what the weights are stored as
  const char *symbol;
  int64_t blockBytes;
  int64_t rows; ///< k of a panel, with the padding of its last group
  int codebookPack = -1;
  llvm::SmallVector<int64_t> arguments; ///< of the kernel behind the panel's
  int64_t depthBytes = 0; ///< of one k of a block, where any part of the depth can be unpacked alone
};

/// Weights in sparse panels: the packs of encoding::PackedPanels, and how they were made.
struct SparsePanels {
  encoding::PanelPlan panels;
  double density; ///< the share of the products that steps compute, the zeros that fill them up aside
  unsigned offsetsPack, picksPack, indexPack; ///< the weights are the product's pack
};

/// A product that a micro-kernel computes: rows of an lhs times packed panels of constant weights.
struct GemmPlan {
  const ajour_kernel_row *kernel;
  mlir::Operation *root;
  mlir::Value lhs, result;
  mlir::Value source;         ///< the argument that holds the lhs, null: rows are gathered element by element
  int64_t offset = 0;         ///< of the lhs's first element in it
  int64_t pixelStride = 0;    ///< elements from one row (pixel) of the lhs to the next in it
  bool direct;                ///< lhs rows lie as they are; else they are copied (im2col) into scratch
  mlir::AffineExpr images, rows; ///< number of images and of rows (output pixels) of one
  int64_t k, n;
  uint8_t flip = 0;           ///< what lhs bytes are xored with
  int32_t lhsZeroPoint = 0;   ///< after the flip
  bool needsRowSums = false;  ///< weights have zero points other than 0
  mlir::Value bias;           ///< f32 bias argument, or null
  unsigned weightsPack = 0;
  int biasPack = -1;
  std::optional<WinogradPlan> winograd;
  std::optional<UnpackPlan> unpack;
  std::optional<SparsePanels> sparse;
};

/// AJOUR_GEMV_* of a format.
int64_t gemvFlags(const encoding::GemvFormat &format);

/// Panels that a block of 16 unpacked columns makes; more than one where panels are narrower.
int64_t panelsOfBlock(const GemmPlan &plan);

/// How the work items of a product are made and walked.
struct GemmSchedule {
  int64_t tiles = 1;         ///< row tiles of a block
  int64_t panelsPerItem = 0; ///< 0: all
  int64_t stretches = 1;     ///< of the depth
  bool rowsOuter = false;    ///< a row tile meets all panels before the next tile does
  bool unpackAll = false;    ///< stored weights: all panels of an item at once, for all blocks of rows that follow
};

/// How a large product is cut: blocks of rows times groups of panels, and the depth into stretches.
struct DeepSchedule {
  int64_t tiles, tileRows; ///< row tiles of a block, and rows of a tile
  int64_t depth;           ///< k of a stretch
  int64_t panelsPerItem;
};

/// What one work item of a product works on, as values.
struct GemmBlock {
  mlir::Value image, first, last; ///< rows of the image
  mlir::Value firstPanel, lastPanel;
  mlir::Value lhs, lda;           ///< row 0 of the matrix, or of scratch, which holds row `first`
  mlir::Value acc, rowSums;
  mlir::Value unpacked, firstUnpacked; ///< panels in scratch, and the first of them
};

/// A convolution whose rows need no copy for each tap: a band of padded input rows is copied once, and each window
/// row is a contiguous run in it.
struct BandPlan {
  int64_t outputRows;  ///< of one work item
  int64_t groups, panelsPerItem; ///< of panels
  int64_t tilePixels;  ///< of one kernel call, within an output row
  int64_t bandRows, rowElements; ///< of the copy in scratch
};

/// A product of few rows, or with weights of few bits: blocks of 16 columns, each of which meets all rows.
struct GemvPlan {
  GemmPlan product; ///< its kernel is that of the values
  encoding::GemvFormat format;
  encoding::GemvSizes sizes;
  const ajour_kernel_row *compress = nullptr; ///< what puts the kept inputs together; null: dense
  int64_t lhsGroup = 0;      ///< elements of a row that are rounded to 8 bits together; 0: the lhs is as it is
  bool lhsHalfScales = false;
  bool copiesLhs = false;    ///< rows are copied into scratch first
};

/// The same product for many rows of an lhs that is rounded: tiles of rows in scratch.
struct TilePlan {
  const ajour_kernel_row *kernel;
  int64_t group, parts; ///< of the lhs, and how many of them are one of the weights'
  bool expands;         ///< blocks of C4^n become dense ones in scratch
};

/// An lhs of 8 bits in scratch: rows of bytes, and scales and sums of each row's groups.
struct RoundedLhs {
  mlir::Value bytes, scales, sums;
  int64_t stride = 0, scaleCount = 0, sumCount = 0; ///< of a row
};

struct DepthwisePlan {
  const ajour_kernel_row *kernel;
  nn::ConvOp conv;
  int64_t channels;
  uint8_t flip = 0;
  int32_t lhsZeroPoint = 0;
  mlir::Value bias;
  unsigned weightsPack = 0;
  int biasPack = -1;
};

/// Which products of a recurrence are a micro-kernel's; a pack of -1: scalar code.
struct RecurrentPlan {
  const ajour_kernel_row *kernel;
  int recurrentPack = -1, projectionPack = -1;
};

/// A convolution with sparse weights, over channel-major activations.
struct SparseConvPlan {
  /// Tiles of columns that are equally wide: `count` of them next to each other from column x on. A row of 16 lanes holds
  /// 16 / width segments of `lanes` columns, each of other rows of the output.
  struct Strips {
    int64_t x, width, lanes, count;
    int64_t rows;  ///< of a tile
    int64_t tiles; ///< of a strip, one below the other
  };
  const ajour_kernel_row *kernel;
  nn::ConvOp conv;
  mlir::Value source; ///< the input [image][channel][y][x]
  mlir::Value bias;
  encoding::SparsePlan sparse;
  double density; ///< the share of the products that lists hold
  int64_t images, height, width;
  bool isDepthwise;                 ///< the filter of a channel reads that channel
  bool isFlat;                      ///< one tap: pixels are one row
  bool copies;                      ///< flat: a tile is copied to aligned channels first
  int64_t tilePixels;               ///< flat
  llvm::SmallVector<Strips> strips; ///< not flat
  int64_t tiles;                    ///< of an image
  int64_t groupsPerItem;
  unsigned inputsPack, weightsPack, indexPack;
};

/// Writes one dispatch. The callee is a clone that may be changed.
class DispatchLowering {
public:
  DispatchLowering(mlir::func::FuncOp callee, ajour_cpu_level level, unsigned symbolCount, mlir::ModuleOp module,
                   const LoweringOptions &options)
      : callee(callee), level(level), symbolCount(symbolCount), module(module), options(options),
        context(callee.getContext()) {}

  mlir::FailureOr<LoweredDispatch> run();

private:
  // Planning.
  std::optional<GemmPlan> planMatmul(nn::MatmulOp op);
  std::optional<GemmPlan> planConv(nn::ConvOp op);
  std::optional<DepthwisePlan> planDepthwise(nn::ConvOp op);
  bool planLhs(GemmPlan &plan, mlir::Value lhs);
  std::optional<SparseConvPlan> planSparseConv(nn::ConvOp op);
  void planFlat(SparseConvPlan &plan);
  void planWindows(SparseConvPlan &plan);
  std::optional<GemvPlan> planGemv(nn::MatmulOp op);
  bool planStoredWeights(GemvPlan &plan, nn::MatmulOp op, PackSpec &weights);
  bool isStoredForm(mlir::Operation *op);
  void planGathers();
  void bindPackedTables();
  mlir::Value packedElement(mlir::Value table, unsigned pack, mlir::Value row, mlir::Value column);
  mlir::Value packedBits(mlir::Value base, mlir::Value offset, int64_t width, mlir::Value i, mlir::Value lane);
  const ajour_kernel_row *planStoredForm(mlir::Operation *stored, bool isRounded, PackSpec &weights);
  bool planSparseWeights(GemvPlan &plan, nn::MatmulOp op, PackSpec &weights);
  bool planZeroPoints(GemmPlan &plan, mlir::Value lhs, mlir::Value rhs, mlir::Value bias, int32_t lhsZeroPoint,
                      llvm::ArrayRef<int32_t> rhsZeroPoints, PackSpec weights);
  RecurrentPlan planRecurrent(mlir::Operation *op);
  std::optional<unsigned> constantArgument(mlir::Value value);
  mlir::Operation *storedForm(mlir::Value value);
  void planSparsePanels(GemmPlan &plan, PackSpec weights);
  void callGemm(const GemmPlan &plan, mlir::Value panel, int64_t part, mlir::Value lhs, mlir::Value lda, mlir::Value dense,
                mlir::Value acc, mlir::Value rows, mlir::Value depth);
  bool planUnpack(GemmPlan &plan, mlir::Value rhs, PackSpec weights);
  void scheduleUnpack(const GemmPlan &plan, GemmSchedule &schedule);
  unsigned addPack(PackSpec spec);

  // Whole dispatches. Each sets `work` (and `scratch`) and writes the body of the item loop.
  void lowerPointwise();
  void lowerConcat(nn::ConcatOp op);
  void lowerReduce(nn::ReduceOp op);
  void lowerPool(mlir::Operation *op);
  bool isPlanar(mlir::Operation *root);
  void lowerPlanes(mlir::Operation *root);
  void lowerArgReduce(nn::ArgReduceOp op);
  void lowerSoftmax(nn::SoftmaxOp op);
  void lowerLayerNorm(nn::LayerNormOp op);
  void lowerCumsum(nn::CumsumOp op);
  void lowerTopK(nn::TopKOp op);
  void lowerScatter(mlir::Operation *op);
  void lowerAttention(nn::AttentionOp op);
  void emitRanges(nn::AttentionOp op, mlir::Value first, mlir::Value count, mlir::Value ranges);
  void lowerGemm(const GemmPlan &plan);
  bool hasPlainRows(const GemmPlan &plan);
  std::optional<DeepSchedule> planDeep(const GemmPlan &plan);
  void lowerDeep(const GemmPlan &plan, const DeepSchedule &deep);
  void forDeepTiles(const GemmPlan &plan, const DeepSchedule &deep, mlir::Value first, mlir::Value last,
                    llvm::function_ref<void(mlir::Value row, mlir::Value count)> body);
  mlir::Value weightsPiece(const GemmPlan &plan, mlir::Value panel, mlir::Value from);
  mlir::Value unpackPiece(const GemmPlan &plan, mlir::Value from, mlir::Value to, mlir::Value panel, int64_t depth);
  void emitStretchCopies(const GemmPlan &plan, const DeepSchedule &deep, mlir::Value copy, int64_t stride, int64_t pieceRows,
                         mlir::Value first, mlir::Value count);
  void addTile(mlir::Value to, mlir::Value from, mlir::Value count, mlir::Type type);
  void lowerDepthwise(const DepthwisePlan &plan);
  void lowerRecurrent(mlir::Operation *op, const RecurrentPlan &plan);
  class RecurrentCell;
  void lowerCausalConv(nn::CausalConvOp op);
  void lowerSelectiveScan(nn::SelectiveScanOp op);
  class SelectiveScan;
  void lowerSparseConv(const SparseConvPlan &plan);
  void lowerGemv(const GemvPlan &plan);
  void copyPadded(const GemmPlan &product, int64_t stride, mlir::Type type, mlir::Value target);
  bool planCodedScales(nn::DequantizeGroupedOp op, PackSpec &weights);
  bool planParameters(nn::DequantizeGroupedOp op, PackSpec &weights, bool isRounded);
  static int64_t copiedElements(const GemvPlan &plan);
  void planStructure(GemvPlan &plan, nn::MatmulOp op, PackSpec &weights);
  RoundedLhs roundLhs(const GemvPlan &plan, mlir::Value source, mlir::Value sourceStride, mlir::Value target);
  std::optional<TilePlan> planRowTiles(const GemvPlan &plan);
  void quantizeTile(const GemvPlan &plan, const TilePlan &tiles, mlir::Value row, mlir::Value count, mlir::Value tile,
                    mlir::Value gathered);
  std::optional<GemmPlan> planUnpackedRows(const GemvPlan &plan);
  void lowerTiles(const GemvPlan &plan, const TilePlan &tiles);
  void expandBlock(const GemvPlan &plan, mlir::Value weights, mlir::Value expanded);
  void lowerByRows(const GemvPlan &few, int64_t mostFew, llvm::function_ref<void()> lowerMany);
  void keepColumns(const GemvPlan &plan, mlir::Value block, mlir::Value groupKept, mlir::Value row, mlir::Value target);
  struct GemvOperands;
  void callGemv(const GemvPlan &plan, const GemvOperands &operands, mlir::Value lhs, mlir::Value lda, mlir::Value row,
                mlir::Value block, mlir::Value groupKept, mlir::Value rows, mlir::Value flags);
  bool readsStreams(const GemvPlan &plan);
  void lowerGemvRows(const GemvPlan &plan, const GemvOperands &operands, mlir::Value block);
  void lowerGemvStreams(const GemvPlan &plan, const GemvOperands &operands, mlir::Value block, mlir::Value apart);

  // Roots as the element of a value, with the reduction inside (the general form).
  void bindContraction(mlir::Operation *root);
  template <typename Op>
  mlir::Value windowedElement(Op op, llvm::ArrayRef<mlir::Value> index,
                              llvm::function_ref<std::pair<mlir::Value, mlir::Value>(size_t, mlir::Value)> inputAt);
  mlir::Value convElement(nn::ConvOp op, llvm::ArrayRef<mlir::Value> index);
  mlir::Value convTransposeElement(nn::ConvTransposeOp op, llvm::ArrayRef<mlir::Value> index);
  mlir::Value matmulElement(nn::MatmulOp op, llvm::ArrayRef<mlir::Value> index);
  std::optional<mlir::Value> groupedExpertSum(nn::ExpertMatmulOp op, llvm::ArrayRef<mlir::Value> row, llvm::ArrayRef<mlir::Value> column);
  mlir::Value expertElement(nn::ExpertMatmulOp op, llvm::ArrayRef<mlir::Value> index);
  std::pair<mlir::Value, mlir::Value> roundingOf(nn::MatmulOp op, mlir::Value first, mlir::Value last,
                                                 llvm::function_ref<mlir::Value(mlir::Value)> lhsAt);
  mlir::Value product(mlir::Value acc, mlir::Value lhs, mlir::Value rhs, mlir::Type lhsType, mlir::Type rhsType,
                      int32_t lhsZeroPoint, mlir::Value rhsZeroPoint, mlir::Type accType);
  mlir::Value addBias(mlir::Value acc, mlir::Value bias, mlir::Value channel, mlir::Type accType, mlir::Type result);
  static mlir::Type accumulatorOf(mlir::Operation *op);
  mlir::Value rhsZeroPoint(llvm::ArrayRef<int32_t> zeroPoints, mlir::Value channel);

  void items(mlir::AffineExpr count, llvm::function_ref<void(mlir::Value)> body);
  /// Stores the results' elements that follow from the root's element at `index` (without a root: at `index`).
  void storeResults(llvm::ArrayRef<mlir::Value> index);
  nn::LookupOp deferredLookup();
  void finishRun(llvm::ArrayRef<mlir::Value> first, mlir::Value count);
  bool collapse();
  /// The index in a space of `rank` dimensions from one of all its factors.
  Index joinParts(llvm::ArrayRef<mlir::Value> parts, const Factors &factors, size_t rank);
  mlir::Value operandPointer(OperandSpec::Kind kind, unsigned index);
  void callKernel(llvm::StringRef symbol, llvm::ArrayRef<mlir::Value> operands);
  mlir::Type lhsType(const GemmPlan &plan);
  mlir::Type accType(const GemmPlan &plan);
  GemmSchedule scheduleGemm(const GemmPlan &plan);
  void copyRows(const GemmPlan &plan, GemmBlock &part, int64_t stride);
  void gatherRows(const GemmPlan &plan, const GemmBlock &part);
  void gatherRow(const GemmPlan &plan, mlir::Value value, mlir::Value image, mlir::Value row, mlir::Value start);
  void forColumns(const GemmPlan &plan, mlir::Value panel,
                  llvm::function_ref<void(mlir::Value column, mlir::Value n)> body);
  void emitElement(const GemmPlan &plan, llvm::ArrayRef<mlir::Value> accs, mlir::Value rowSum, mlir::Value row,
                   const Index &pixel, mlir::Value j, mlir::Value n);
  int64_t panelElements(const GemmPlan &plan);
  mlir::Value panelPointer(const GemmPlan &plan, const GemmBlock &part, mlir::Value panel);
  std::pair<mlir::Value, mlir::Value> splitItem(mlir::Value item, mlir::AffineExpr blocks, int64_t groups,
                                                bool groupsOuter);
  void reserveUnpacked(const GemmPlan &plan, GemmBlock &part, int64_t panels);
  void unpackPanels(const GemmPlan &plan, const GemmBlock &part, mlir::Value first, mlir::Value last);
  void unpackOnce(const GemmPlan &plan, GemmBlock &part, mlir::Value item, mlir::Value block);
  void emitPanels(const GemmPlan &plan, const GemmSchedule &schedule, GemmBlock &part,
                  llvm::function_ref<void(mlir::Value)> body);
  void emitRowTiles(const GemmPlan &plan, const GemmBlock &part,
                    llvm::function_ref<void(mlir::Value row, mlir::Value count)> tile);
  void emitGemmTile(const GemmPlan &plan, const GemmBlock &part, mlir::Value row, mlir::Value count, mlir::Value panel);
  void emitStretches(const GemmPlan &plan, const GemmSchedule &schedule, const GemmBlock &part, mlir::Value panel);
  void prefetchEpilogue(const GemmPlan &plan, mlir::Value panel, mlir::Value firstRow, mlir::Value rows);
  void emitTileEpilogue(const GemmPlan &plan, llvm::ArrayRef<mlir::Value> accs, mlir::Value rowSums, mlir::Value panel,
                        mlir::Value firstRow, mlir::Value rows);
  mlir::Value panelColumns(const GemmPlan &plan, mlir::Value panel);
  void emitRowEpilogue(const GemmPlan &plan, llvm::ArrayRef<mlir::Value> accs, mlir::Value rowSum, mlir::Value row,
                       mlir::Value panel, const Index &pixel);
  std::optional<WinogradPlan> planWinograd(const GemmPlan &plan);
  void lowerWinograd(const GemmPlan &plan);
  void emitWinogradProducts(const GemmPlan &plan, const WinogradLayout &layout, int64_t count, mlir::Value panel);
  void emitWinogradOutputs(const GemmPlan &plan, const WinogradLayout &layout, mlir::Value image, mlir::Value firstTile,
                           int64_t count, mlir::Value panel);
  std::optional<BandPlan> planBand(const GemmPlan &plan);
  void lowerBands(const GemmPlan &plan, const BandPlan &band);
  void copyBand(const GemmPlan &plan, const BandPlan &band, mlir::Value image, mlir::Value firstRow, mlir::Value rows);
  void lowerFlat(const SparseConvPlan &plan);
  void lowerWindows(const SparseConvPlan &plan);
  mlir::Value sparseIndex(const SparseConvPlan &plan, mlir::Value position);
  void callSparse(const SparseConvPlan &plan, mlir::Value src, mlir::Value scale, mlir::Value chunk, mlir::Value group,
                  mlir::Value acc, int64_t lda, int64_t pixels, mlir::Value accumulate);
  void storeSparse(const SparseConvPlan &plan, mlir::Value acc, mlir::Value position, llvm::ArrayRef<mlir::Value> index);
  void forFilters(const SparseConvPlan &plan, mlir::Value group,
                  llvm::function_ref<void(mlir::Value, mlir::Value)> fn);
  void emitWindowTile(const SparseConvPlan &plan, const SparseConvPlan::Strips &strips, mlir::Value image, mlir::Value y,
                      mlir::Value x, mlir::Value firstGroup, mlir::Value lastGroup, mlir::Value accs);
  void storeWindowTile(const SparseConvPlan &plan, const SparseConvPlan::Strips &strips, mlir::Value image,
                       mlir::Value y, mlir::Value x, mlir::Value group, mlir::Value acc);
  mlir::Operation *findRoot();
  void findReorders(mlir::Operation *root);

  mlir::func::FuncOp callee;
  ajour_cpu_level level;
  unsigned symbolCount;
  mlir::ModuleOp module;
  LoweringOptions options;
  mlir::MLIRContext *context;

  LoweredDispatch lowered;
  llvm::SmallPtrSet<mlir::Operation *, 4> storedForms; ///< operations whose constants are packed
  llvm::SmallVector<std::pair<mlir::Value, unsigned>> packedTables; ///< and their packs
  Emitter *e = nullptr;
  mlir::Value scratch, begin, end;
  /// Where a dispatch has two forms of its product, for few and for many rows: the work items of the other one, which come
  /// before those that are being written.
  std::optional<mlir::AffineExpr> itemsBefore;
  int64_t mostFewRows = 0; ///< of the form for few
  bool canFinishRuns = false; ///< the lowering calls finishRun for all results that it stores
  llvm::SmallVector<mlir::Operation *> reorders; ///< between the root and the result, each the reader of the one before
  llvm::SmallVector<mlir::Value> pointers; ///< by position in lowered.operands
};

} // namespace ajour::loops

#endif
