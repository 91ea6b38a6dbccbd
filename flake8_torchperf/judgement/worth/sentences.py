"""A sentence for each feature of a finding, for people who ask for its worth.

Sentences begin in lower case and have no full stop: a number stands in front of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.judgement.rows import ROWS

if TYPE_CHECKING:
    from collections.abc import Mapping

_ROWS = {row.id: row.sentence for row in ROWS}

_KINDS = {
    "HostRead": "Python reads a value of a tensor",
    "Transfer": "a tensor is copied between host and device",
    "HostReduction": "Python reduces tensors one by one",
    "Format": "a tensor becomes text",
    "HostComparison": "a value that was read is compared on the host",
    "Synchronize": "the code waits explicitly",
    "NumberUse": "a tensor is used as a Python number",
    "TensorIteration": "Python iterates over a tensor",
    "ElementAccess": "a loop takes a tensor's elements by their position",
    "ParameterLoop": "a loop over the parameters runs an operation for each",
    "Growth": "a loop makes a tensor longer in each round",
    "HostAccumulation": "Python keeps a running total of values that it reads",
    "Branch": "Python branches on a tensor",
    "DynamicShape": "the result has a size that only the device knows",
    "MaskIndex": "a mask selects elements, so that only the device knows how many",
    "ListIndex": "a list is the index, which is copied to the device",
    "NumberAssigned": "a number is assigned through an index",
    "Allocation": "a tensor is made on the device",
    "GraphBreak": "torch.compile breaks the graph",
    "Recompile": "torch.compile compiles again",
    "Transform": "a transform of torch.func can't run the operation",
    "ModuleMove": "a whole module is moved",
    "Race": "a copy is read before it has arrived",
    "DataLoader": "an option of a data loader starves the device",
    "OptimizerOption": "an option makes an optimizer slow",
    "Switch": "a switch for debugging is on",
    "RecordedEvaluation": "an evaluation records gradients",
    "RepeatedData": "each rank goes through the whole data set",
    "KernelSize": "a Triton kernel compiles again for each size",
    "GraphAccumulation": "a running total keeps the graph of each step",
    "TorchCall": "torch's own code waits in the call",
    "Call": "a function that a rule names is called",
    "UnseenCall": "the call can't be followed",
}
_TRAITS = {
    "allow_rnn": "torch.compile is told to trace recurrent layers",
    "allow_unspec_int_on_nn_module": "torch.compile is told to take integers of modules as dynamic",
    "append": "the compiled code appends to a list from outside",
    "as-another": "the copy takes its device from another tensor",
    "as-array": "the copy becomes an array",
    "base": "the value is the base of a power or a logarithm",
    "beside-list": "a list is iterated along with the tensor",
    "bounded": "the number of values to reduce is bounded",
    "by-stated": "the device is that of a tensor whose type is stated",
    "capture_dynamic_output_shape_ops": "torch.compile is told to capture dynamic shapes",
    "capture_scalar_outputs": "torch.compile is told to capture values that are read",
    "compiled": "the code is compiled or traced",
    "compiled-inside": "compiled code is called in a transform",
    "compiler-only": "only the compiler is hindered: the wait itself is free or wanted",
    "compiling-guard": "a test for tracing or compiling stands around it",
    "counted": "the loop counts the positions of the tensor",
    "counter": "the compiled code counts in a variable from outside",
    "default-accelerator": "a `with` block makes an accelerator the default device",
    "default-device": "a `with` block sets the default device",
    "device-object": "the device is an object, not a name",
    "error-message": "the value stands in the message of an error",
    "feeds-steps": "training steps take its batches",
    "flag-dropped": "`non_blocking` is lost on the way to the copy",
    "from-chosen": "the tensor is made on the host on purpose",
    "from-empty": "the tensor has no elements",
    "from-factory": "a function such as torch.zeros makes the tensor on the host",
    "from-numpy": "the tensor is made of an array",
    "from-python": "the tensor is made of Python numbers or lists",
    "from-sometimes": "the tensor is made on the host on some paths only",
    "fullgraph": "the code is compiled with fullgraph=True",
    "given-away": "the value goes to a function of another library",
    "global": "the compiled code changes a global variable",
    "host-only": "the operation takes tensors on the host only",
    "host-table": "the index selects from a tensor that lies on the host",
    "ignore_logger_methods": "torch.compile is told to leave out methods that log",
    "ignore_logging_functions": "torch.compile is told to leave out functions that log",
    "in-helper": "a function that is called here waits",
    "keyed": "a key decides the order of the reduction",
    "kept": "the tensor is kept for later calls",
    "leak": "a value of the transform is kept outside",
    "logged": "the value is only logged",
    "loop": "the compiled code unrolls a loop",
    "made-text": "the text of an assertion is computed",
    "message": "the value stands in the text of an assertion",
    "named-host": "the call names the host, to which a function copies",
    "no-gradients": "autograd is off here",
    "no-pin": "the loader does not pin its memory",
    "no-workers": "the loader has no workers",
    "non-blocking": "the copy is made with non_blocking=True",
    "number": "each new number compiles again",
    "of-bools": "the values are truth values",
    "of-numbers": "the values are numbers",
    "opaque-body": "the loop's body calls functions that are not known",
    "option": "an option of the call is the cause",
    "over-compiled": "a transform is applied to a compiled function",
    "pageable": "the host's memory is pageable, so that the copy waits",
    "partly": "only a part of the values is reduced",
    "pinned": "the host's memory is pinned",
    "recorded": "the code is recorded as a CUDA graph",
    "reorderable_logging_functions": "torch.compile is told to log behind the graph",
    "repeated": "each round or call makes the same copy again",
    "row-by-row": "vmap runs the function row by row",
    "scalar": "the copied tensor has one element",
    "sized": "the code needs to know how many elements are selected",
    "step": "the compiled code steps an optimizer",
    "strided": "the copied part is not contiguous",
    "syncs": "torch itself waits in the call",
    "to-device": "the copy goes to the device",
    "to-host": "the copy goes to the host",
    "trace_autograd_ops": "torch.compile is told to trace operations of autograd",
    "traced": "only a traced or compiled run takes the branch",
    "transient": "the loader starts its workers anew for each epoch",
    "uses-streams": "the module uses streams of its own",
    "varying": "the copied data differ from call to call",
    "vmap": "the code runs under vmap",
    "whole": "all values are reduced at once",
}
_OTHERS = {
    "cost:per-element": "the cost arises for each element",
    "cost:per-step": "the cost arises in each step",
    "cost:per-request": "the cost arises for each request",
    "cost:per-epoch": "the cost arises once in an epoch",
    "cost:per-call": "the cost arises once in a call, and how often that is nothing shows",
    "rate:own-loop": "the function's own text shows a loop over elements or steps",
    "rate:once-a-step": "the innermost loop around it is one over steps or calls of a model",
    "rate:around-step": "the code around the function's loops runs in each step",
    "rate:called": "a call that was followed leads from a loop or a step to it",
    "rate:straight-line": "it runs in each step, and no loop in the function repeats it",
    "value:none": "no tensor is read",
    "value:device": "the tensor lies on an accelerator",
    "value:host": "the tensor lies on the host, as far as is known",
    "value:chosen": "the tensor lies on the device that the program chooses",
    "value:unknown": "nothing says where the tensor lies",
    "value:unshown": "only its use shows that it is a tensor, and nothing where it lies",
    "value:beside-host": "the tensor is combined with one that lies on the host",
    "value:one-element": "the tensor has one element",
    "sure:stated": "an annotation, a docstring or torch itself states that it is a tensor",
    "sure:inferred": "that it is a tensor is inferred from how it is used",
    "sure:assumed": "that it is a tensor is only assumed by convention",
    "queue:empty": "the wait follows directly on another, so the device has nothing left to do",
    "queue:little": "only a few small operations are queued since the last wait",
    "queue:behind-once": "only steps repeat it, and another wait has left hardly any work",
    "queue:kept-behind": "a wait that stays, explicit or a gradient scaler's, follows at once",
    "queue:copy-behind": "a copy to the host follows at once, which waits for the same work",
    "queue:wait-behind": "another wait follows at once",
    "leader:kept": "the wait that it follows is one that stays, or is not told",
    "leader:copy": "the wait that it follows is a copy to the host",
    "leader:wait": "the wait that it follows is told, too",
    "leader:call": "the wait that it follows is in a function that is called before it",
    "leader:caller": "the wait that it follows is in a caller of the function",
    "queue:each-round": "each round of a loop waits, with little work between the waits",
    "queue:on-some-path": "on some path through the branches before it, it follows on another wait",
    "queue:some": "some small operations are queued since the last wait",
    "queue:much": "much work is queued in front of the wait",
    "queue:start": "no wait stands before it in the function, and little work that is queued",
    "callers:open": "the function may have callers that can't be seen",
    "callers:known": "all calls of the function are known",
    "callers:none": "nothing that runs, but for tests, leads to the function",
    "callers:elsewhere": "only code outside the project may lead to the function",
    "callers:reached": "a call of the function in a step was found",
    "callers:found": "all calls of the function are known, and there are some",
    "place:branch": "a branch stands around it",
    "place:seldom": "the branch around it runs seldom",
    "place:off-by-default": "the default of the option around it leads elsewhere",
    "steps:train": "a training step leads to it",
    "steps:evaluate": "all programs that lead to it take no training steps",
    "place:nested-loops": "more than one loop stands around it",
    "place:inner-function": "it stands in a nested function",
}
# The table of the rows gives the rest of these sentences.
_OF_ROWS = {
    "row": "",
    "runs": "what tells how often it runs: ",
    "left-out": "what leaves it to scope all: ",
}


def sentence_of(feature: str, rules: Mapping[str, str]) -> str:
    """Return the sentence of a feature; ``rules`` holds the names of rules by code.

    Raises KeyError for a feature that no table has.
    """
    family, _, name = feature.partition(":")
    if family == "rule":
        return f"it is a finding of {name} {rules.get(name, '')}".rstrip()
    if family == "kind":
        return _KINDS[name]
    if family == "trait":
        return _TRAITS[name]
    if family in _OF_ROWS:
        return f"{_OF_ROWS[family]}{_as_part(_ROWS[name])}"
    return _OTHERS[feature]


def _as_part(sentence: str) -> str:
    return f"{sentence[0].lower()}{sentence[1:]}".removesuffix(".")
