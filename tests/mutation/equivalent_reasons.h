// Why a mutant of a site may change nothing that a run shows.
#pragma once

namespace attn_opt {

inline constexpr const char* kReshapeBetween =
    "only a Reshape lies between the two values, and what is written reshapes either";
inline constexpr const char* kCopyBetween = "only nodes that change no finite number lie between the two values";
inline constexpr const char* kCutAndJoined = "it is cut apart and put together again, which leaves it as it is";
inline constexpr const char* kAddedInModel =
    "the model adds its mask too: a masked key that is no number shows in the row on both sides";
inline constexpr const char* kReshapeBehind = "a Reshape behind it gives what it makes the same shape";
inline constexpr const char* kUnreadScores =
    "the factors of the scores are computed beside what is cut: how large they are is not read, and as much rounding is "
    "allowed";
inline constexpr const char* kNumberRounds =
    "the model adds 1e4 to its scores and takes it off again, which rounds them as much as this does";
inline constexpr const char* kSaidByTheNode =
    "positions are said by the node, whatever the mask that compares them is taken for";
inline constexpr const char* kAbsorbed = "any fill this deep leaves a masked key the probability 0, whatever the number";
inline constexpr const char* kEmptyRowsAlone =
    "only rows differ in which every key is masked by one Where or the other, and that there are none is assumed";
inline constexpr const char* kNoLowest =
    "the mask holds 0 and -1e4: the Where that replaces the lowest number replaces nothing";
inline constexpr const char* kShift =
    "every key that is kept, or every one that is not, shifts alike, which softmax does not see";
inline constexpr const char* kCommutes = "the two masks are added: their order does not matter";
inline constexpr const char* kExpandPutsAxes = "the Expand or product behind it puts axes in front as well";
inline constexpr const char* kRounding =
    "over the few keys of a draw a softmax in float16 is off by less than its result is rounded";
inline constexpr const char* kHalvesAsTheyAre =
    "float16 is rounded after each node here, which leaves as little of an empty row on both sides; a runtime may keep more";
inline constexpr const char* kOfKernels =
    "one version of the operator is as another here; a runtime may have a kernel for one, which sees the mask otherwise";
inline constexpr const char* kTooFine = "a factor this little off moves a sink by less than the numbers are compared to";
inline constexpr const char* kSoftmaxItself = "the softmax's own result, which they are; what is made of it is an output";
inline constexpr const char* kMaskedAlready = "the mask behind the softmax makes 0 of what the operator's own has made 0";
inline constexpr const char* kNoSoftcap = "without a softcap the stages 1 and 2 of the scores are one";
inline constexpr const char* kNoSoftcapBelow = "without a softcap the stages 0 and 1 of the scores are one";
inline constexpr const char* kStagesAreOne = "without a softcap and a mask the stages 0, 1 and 2 of the scores are one";
inline constexpr const char* kZeroAnyway =
    "Attention nodes on both sides give 0 in rows without a key, whatever the description says";
inline constexpr const char* kCausalAnyway = "the mask shows no query a later key as it is";
inline constexpr const char* kDeepAnyway = "positions make a mask of 0 and what masks a key however often it is counted";
inline constexpr const char* kKeepsItsKey =
    "positions leave every query a key, so that no row shows how deep the others are masked";
inline constexpr const char* kListedByTheEdit = "the edit lists it itself where is_causal stands for a fill";
inline constexpr const char* kLeavesExpRange = "rows that differ leave the range of exp(), which is assumed not to happen";
inline constexpr const char* kOnesAndZeros = "the mask that scores are multiplied with holds ones and zeros";
inline constexpr const char* kNoInfinity =
    "the bias is a product of what is drawn finite: no row is empty but those that are masked again, 0 on both sides";
inline constexpr const char* kEmptyBelowClamp =
    "only rows differ in which every key is masked below the clamp, and that there are none is assumed";
inline constexpr const char* kNoNumberInAnyRow =
    "what is no number is in every row of both sides: in the largest score of all, and in the last key";
inline constexpr const char* kLargeAlready = "what is expanded is as large already: that it is could only not be proven";
inline constexpr const char* kSinksKeepRows = "rows that the masks leave no key keep their sinks, whatever the fill";
inline constexpr const char* kInfiniteQueryAlone =
    "only a query that is infinite has no score of 0 with a key of zeros, and none is drawn";
inline constexpr const char* kTimesZero = "what is no number is none in the model either, where it is multiplied with 0";
inline constexpr const char* kExactInHalf = "0 and -3 are numbers of float16 too";
inline constexpr const char* kScoresInHalf = "the model rounds its scores to float16, which is as coarse";
inline constexpr const char* kWeightsInHalf = "the model rounds what V is multiplied with to float16, which is as coarse";
inline constexpr const char* kHalfBefore = "it is float16 before it is cast up";
inline constexpr const char* kMasksAlone = "the mask holds 0 and -inf alone, and what is 0 or -inf stays that";
inline constexpr const char* kForInference =
    "the Reshape leaves the scores as they are: it tells shape inference how many keys there are";
inline constexpr const char* kHidesSizes =
    "sizes are 0, which copies the axis, or as they were: it keeps an optimiser from writing -1";
inline constexpr const char* kNothingInEither = "a past of no rows: neither holds anything";
inline constexpr const char* kNoKeyAlone =
    "a key alone does not run, since V has as many rows as there are probabilities: all are there already";
inline constexpr const char* kTwoZeros = "the sizes are 0, which copies the axis, in more than one place";
inline constexpr const char* kOtherViews =
    "the operands are taken where their heads are repeated, which the change leaves as it is";
inline constexpr const char* kExpandWidens = "Expand keeps the larger of the size it is given and of the size that is there";
inline constexpr const char* kOneNumber = "a factor that is one number scales either operand alike";
inline constexpr const char* kNoneInfinite = "a bound that only an infinite score is beyond changes nothing that is drawn";
inline constexpr const char* kNoInfiniteScore = "no score is infinite in what is drawn for this model";
inline constexpr const char* kOneForAllKeys = "the bias is one number for all keys of a row, which a softmax does not see";
inline constexpr const char* kOutOfExpRange =
    "a row of an infinite score is out of the range of exp(), which is assumed as well";
inline constexpr const char* kNoneHidden = "no key that is no number is masked in what is drawn for this model";
inline constexpr const char* kIsZero = "the number is 0, or is added to one that is";
inline constexpr const char* kLowestThroughout =
    "of so few keys all of a row are the lowest number or none: they weigh alike, whatever stands for it";
inline constexpr const char* kNoneIsLowest = "the Where replaces the lowest number, of which the mask holds none";
inline constexpr const char* kPerHead = "a factor per head scales either operand alike";
inline constexpr const char* kPerBatch = "a factor per batch element scales either operand alike";
inline constexpr const char* kOthersFold = "it keeps a runtime from folding a sum, which nothing does here";
inline constexpr const char* kKeysBesideSinks = "a row keeps its sinks, and without a mask its keys beside them";
inline constexpr const char* kMinusOne = "the factor is -1, by which divided is as multiplied";
inline constexpr const char* kOneValue = "Q, K and V are one value, seen through Transposes";
inline constexpr const char* kUnitAxes = "one of the axes that change places has one element";
inline constexpr const char* kNoneEmpty = "no row is empty in what is drawn for this model";
inline constexpr const char* kOneButRounding = "the factor is 1 but for rounding";
inline constexpr const char* kOnes = "what is cast holds ones and zeros";
inline constexpr const char* kEqualSizes = "two of the sizes are equal";
inline constexpr const char* kDrawnFinite = "what is drawn for the bias is finite: no row is empty";
inline constexpr const char* kAssumedFinite =
    "only rows differ that are no number in the model, where a fill lies over an infinite bias: that none is, is assumed";
inline constexpr const char* kNoKeyAssumed = "only rows without a key differ, and that there are none is assumed";
inline constexpr const char* kRoundsByOrder =
    "a row of nothing but the fill is rounded by the order of the sums, by less than what a draw of a few keys is held to";
inline constexpr const char* kBoundedAlike = "a bound that leaves -inf, or none, as it was: a row has a key in either";
inline constexpr const char* kNotDrawnApart =
    "not equivalent: it shows where sizes differ that are assumed to be equal, in a way that none of those drawn apart do";

}  // namespace attn_opt
