"""The kinds of places where tensor work meets Python."""

from __future__ import annotations

from enum import Enum


class SiteKind(str, Enum):
    """The ways in which Python and tensor work meet; rule pages name them by these values."""

    HOST_READ = "HostRead"
    TRANSFER = "Transfer"
    HOST_REDUCTION = "HostReduction"
    FORMAT = "Format"
    HOST_COMPARISON = "HostComparison"
    SYNCHRONIZE = "Synchronize"
    NUMBER_USE = "NumberUse"
    TENSOR_ITERATION = "TensorIteration"
    ELEMENT_ACCESS = "ElementAccess"
    PARAMETER_LOOP = "ParameterLoop"
    GROWTH = "Growth"
    HOST_ACCUMULATION = "HostAccumulation"
    BRANCH = "Branch"
    DYNAMIC_SHAPE = "DynamicShape"
    MASK_INDEX = "MaskIndex"
    LIST_INDEX = "ListIndex"
    NUMBER_ASSIGNED = "NumberAssigned"
    ALLOCATION = "Allocation"
    GRAPH_BREAK = "GraphBreak"
    RECOMPILE = "Recompile"
    TRANSFORM = "Transform"
    MODULE_MOVE = "ModuleMove"
    RACE = "Race"
    DATA_LOADER = "DataLoader"
    OPTIMIZER_OPTION = "OptimizerOption"
    SWITCH = "Switch"
    RECORDED_EVALUATION = "RecordedEvaluation"
    REPEATED_DATA = "RepeatedData"
    KERNEL_SIZE = "KernelSize"
    GRAPH_ACCUMULATION = "GraphAccumulation"
    TORCH_CALL = "TorchCall"
    CALL = "Call"
    UNSEEN_CALL = "UnseenCall"


# Kinds of sites that need a size that only the device knows.
SIZED_KINDS = (SiteKind.DYNAMIC_SHAPE, SiteKind.MASK_INDEX)
# Kinds of sites that are loops, or stand in ones, whose rounds launch operations.
LAUNCHING_KINDS = (
    SiteKind.TENSOR_ITERATION, SiteKind.ELEMENT_ACCESS, SiteKind.PARAMETER_LOOP, SiteKind.GROWTH,
)  # fmt: skip
# The traits that show how a site's function is run; a nested function has its own.
OWN_TRAITS = frozenset(("compiled", "fullgraph", "vmap"))
