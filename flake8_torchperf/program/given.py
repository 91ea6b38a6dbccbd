"""The use that code which is not read makes of functions and objects it is given.

Each table is a list of names with one meaning; the sources are the documents of Python and torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flake8_torchperf.program.outlines.outline import FUNCTION

if TYPE_CHECKING:
    from collections.abc import Callable

# Methods that Python runs without their name, by what is done with the object.
ENTRANCES = {
    "__call__": "called",
    "forward": "called",
    "__iter__": "iterated",
    "__next__": "iterated",
    "__aiter__": "iterated",
    "__anext__": "iterated",
    "__enter__": "iterated",
    "__exit__": "iterated",
    "__aenter__": "iterated",
    "__aexit__": "iterated",
    "__getitem__": "indexed",
    "__init__": "constructed",
    "__post_init__": "constructed",
    "__new__": "constructed",
}
# Methods that only operators run: the names of these in the ast, with "=" behind those of an
# assignment. A method with an "r" is that of the operand on the right.
_BINARY = {
    "add": "Add", "sub": "Sub", "mul": "Mult", "matmul": "MatMult", "truediv": "Div", "mod": "Mod",
    "pow": "Pow", "lshift": "LShift", "rshift": "RShift", "xor": "BitXor", "and": "BitAnd",
    "floordiv": "FloorDiv",
}  # fmt: skip
OPERATOR_METHODS = {
    **{f"__{name}__": (word, f"{word}=") for name, word in _BINARY.items()},
    **{f"__r{name}__": (word, f"{word}=") for name, word in _BINARY.items()},
    **{f"__i{name}__": (f"{word}=",) for name, word in _BINARY.items()},
    "__neg__": ("USub",), "__pos__": ("UAdd",), "__invert__": ("Invert",),
    "__lt__": ("Lt", "Gt"), "__gt__": ("Gt", "Lt"), "__le__": ("LtE", "GtE"),
    "__ge__": ("GtE", "LtE"), "__contains__": ("In", "NotIn"),
    "__eq__": ("Eq", "NotEq", "In", "NotIn"), "__ne__": ("NotEq",),
}  # fmt: skip
# Those that other code may run, too: dicts and sets compare their items.
OPERATED_ELSEWHERE = frozenset(("__eq__", "__ne__"))
# Methods that give an object's value in another type, by the calls that ask for it; a test asks for
# a "bool", a part of an f-string for a "format".
ASKED_FOR = {
    "__bool__": ("bool",), "__int__": ("int",), "__float__": ("float",), "__index__": ("range",),
    "__complex__": ("complex",), "__hash__": ("hash",), "__len__": ("len", "bool"),
    "__str__": ("str", "print", "format"), "__format__": ("format",),
    "__repr__": ("repr", "str", "print", "format"),
    "__abs__": ("abs",), "__round__": ("round",), "__reversed__": ("reversed",),
}  # fmt: skip
# Those that a conversion asks for only if a class has not the other one.
ASKED_SECOND = {"__len__": "__bool__", "__repr__": "__str__", "__str__": "__format__"}
# Calls whose result is what they are given, or runs it where it is run itself.
PASSING_ON = frozenset((
    "partial", "partialmethod", "compile", "script", "wraps", "lru_cache", "cache", "staticmethod",
    "classmethod", "iter", "aiter", "enumerate", "zip", "reversed", "islice", "chain",
    "tqdm", "trange", "cycle", "contextmanager", "asynccontextmanager", "DataParallel",
    "DistributedDataParallel", "FullyShardedDataParallel", "prepare", "deepcopy", "cast",
    "inference_mode", "no_grad", "singledispatch", "update_wrapper", "closing", "tee", "Lambda",
    "vmap", "grad", "value_and_grad", "grad_and_value", "jacrev", "jacfwd", "hessian", "cmp_to_key",
))  # fmt: skip
# Calls that make a property, with when it runs what it is given in a slot.
_READING = {"0": "to be read", "fget": "to be read", "func": "to be read"}
PROPERTIES = {
    "property": {
        **_READING, "1": "to be assigned", "fset": "to be assigned",
        "2": "to be deleted", "fdel": "to be deleted",
    },
    "abstractproperty": _READING,
    "cached_property": _READING,
}  # fmt: skip
# Calls that run the functions they are given while they run, or once after each call.
RUNNING_CALLS = frozenset((
    "map", "starmap", "filter", "sorted", "sort", "min", "max", "reduce", "apply", "tree_map",
    "checkpoint", "submit", "Thread", "Process", "Timer", "run",
    "spawn", "start_processes", "run_in_executor", "to_thread", "gather", "create_task", "wait_for",
    "run_until_complete", "imap", "imap_unordered", "apply_async", "map_async", "call_soon",
    "add_done_callback",
    "accumulate", "groupby", "defaultdict", "next", "anext", "step", "apply_along_axis", "timeit",
))  # fmt: skip
# Calls whose result is called as what they are given first.
TRANSFORMING = frozenset((
    "partial", "compile", "vmap", "grad", "grad_and_value", "vjp", "jvp", "jacrev", "jacfwd",
    "hessian",
))  # fmt: skip
# Class methods of bases that make an object, as those of transformers, diffusers and Lightning.
MAKING = frozenset(("from_pretrained", "from_config", "load_from_checkpoint"))
# The call that makes a method of an object, of a function and the object.
BINDING = "MethodType"
# Containers of modules, made of several modules or of one list of them.
MODULE_CONTAINERS = frozenset(("ModuleList", "Sequential", "ModuleDict"))
# Those of them that are made of one list or dict, and call no module themselves.
MODULE_LISTS = frozenset(("ModuleList", "ModuleDict"))
# Functions of torch and numpy themselves that run what they are given, or return it.
FUNCTIONS_TAKING = frozenset((
    "compile", "vmap", "cond", "while_loop", "apply_along_axis", "vectorize", "frompyfunc",
    "fromfunction", "piecewise", "apply_over_axes",
))  # fmt: skip
# Methods of a generator that run its body to the next `yield`.
RUNNING_ON = frozenset(("send", "throw", "__next__", "asend", "athrow", "__anext__"))
# The attribute of a function, a method or a class that calls it in another process; the call and
# the decorator of this name return what has it.
REMOTE = "remote"
# Methods that a call of their object runs.
RUN_WHEN_CALLED = ("forward", "__call__")
# Calls that find a method by its name, which they are given in a slot.
FINDING_METHODS = {"getattr": "1", "methodcaller": "0"}
# Methods that register a hook, with the method of the same object that runs it ("" for a call).
HOOK_RUNS = {
    "register_step_post_hook": "step",
    "register_step_pre_hook": "step",
    "register_forward_hook": "",
    "register_forward_pre_hook": "",
    "register_full_backward_hook": "backward",
    "register_full_backward_pre_hook": "backward",
    "register_post_accumulate_grad_hook": "backward",
    "register_hook": "backward",
    "register_comm_hook": "backward",
}
# Functions that register a hook of all modules or optimizers, with the method of any that runs it.
HOOKS_OF_ALL = {
    "register_module_forward_hook": "",
    "register_module_forward_pre_hook": "",
    "register_module_full_backward_hook": "backward",
    "register_module_full_backward_pre_hook": "backward",
    "register_optimizer_step_post_hook": "step",
    "register_optimizer_step_pre_hook": "step",
}
# Classes that run a function they are given when an object is made, and in one of its methods.
RUNNING_CLASSES = {"LambdaLR": "step", "MultiplicativeLR": "step"}
# The methods of such a base that torch runs where the class is applied: ``Clipped.apply(x)``.
APPLYING_BASES = frozenset(("Function", "InplaceFunction"))
APPLIED = frozenset(("forward", "backward", "setup_context", "jvp", "vjp"))
# Packages whose data sets run the functions that they are given, on samples that lie on the host,
# and the methods by which one that is made already is given these. `map` may run a model.
_DATA_PACKAGES = (
    "torchvision.datasets", "torchaudio.datasets", "torch_geometric.datasets", "datasets",
    "webdataset", "torchdata", "monai.data",
)  # fmt: skip
# Names of what is in them begin with one of these.
OF_DATA_PACKAGES = tuple(f"{package}." for package in _DATA_PACKAGES)
GIVING_TO_DATA = frozenset(("set_transform", "with_transform"))
# Classes whose objects take samples from the object that they are given first.
LOADING_CLASSES = frozenset(("DataLoader",))
DATA_SLOTS = frozenset(("0", "dataset"))
# The arguments by which a loader, or a trainer that makes loaders, is given what makes batches.
COLLATING = frozenset(("collate_fn", "data_collator"))
# Classes whose objects call what they are given, and are containers of it: torch's, and that of
# torchvision, torch_geometric, monai and albumentations for transforms.
CALLING_CONTAINERS = frozenset(("Sequential", "Compose"))
# Methods that put what they are given into the container they are called on.
FILLING_CALLS = frozenset(
    ("append", "add", "insert", "setdefault", "appendleft", "put", "put_nowait")
)
# Methods whose result is the container itself (0) or one of its items (1).
ITEMS_OF = {"values": 0, "items": 0, "copy": 0, "get": 1, "pop": 1, "popleft": 1, "setdefault": 1}
# Methods that return the object they are called on.
KEEPING = frozenset((
    "to", "cuda", "cpu", "eval", "train", "half", "float", "bfloat16", "requires_grad_", "apply",
    "double", "to_empty", "share_memory", "options",
))  # fmt: skip
# Methods that return the objects that they are given, as those of Accelerate and Fabric do.
KEEPING_EACH = frozenset(("prepare", "setup"))
# Decorators that leave it to the callers when the function runs.
PLAIN_DECORATORS = frozenset((
    "property", "staticmethod", "classmethod", "abstractmethod", "cached_property", "lru_cache",
    "cache", "wraps", "overload", "override", "final", "contextmanager", "asynccontextmanager",
    "dataclass", "no_grad", "inference_mode", "singledispatch", "singledispatchmethod",
    "deprecated", "profile", "jit",
    "typechecked", "jaxtyped", "beartype", "cuda_timer", "timeit", "rank_zero_only", "record",
    "setter", "getter", "deleter", "compile", "main", "remote",
))  # fmt: skip
# Decorators of a function that calls those which its ``register`` decorates.
DISPATCHING = frozenset(("singledispatch", "singledispatchmethod"))
# Bases that call none of the methods that a class adds.
UNCALLING_BASES = frozenset((
    "object", "Module", "ABC", "Protocol", "Generic", "NamedTuple", "TypedDict", "Enum",
    "Exception",
))  # fmt: skip
# The methods that a base calls, by how their names begin, of bases that call no other: Lightning's
# hooks are in lightning/pytorch/core/hooks.py, the others in torch's own classes.
_LIGHTNING = (
    "training_", "train_", "validation_", "val_", "test_", "predict_", "on_", "configure_",
    "optimizer_", "lr_", "manual_", "backward", "prepare_", "setup", "teardown", "transfer_",
    "get_", "log", "toggle", "untoggle", "clip_", "state_dict", "load_",
)  # fmt: skip
_MODULE = (
    "_load", "_save", "_apply", "_named", "_get_name", "_replicate", "load_state_dict",
    "state_dict", "get_extra_state", "set_extra_state", "extra_repr", "train", "parameters",
    "named_", "buffers", "modules", "children", "requires_grad_", "zero_grad", "register_",
)  # fmt: skip
# diffusers/models/modeling_utils.py and diffusers/configuration_utils.py.
_DIFFUSERS = (
    "_", "from_", "save_", "load_", "get_", "set_", "enable_", "disable_", "register_", "add_",
    "fuse_", "unfuse_", "extract_", "to_json_", "push_", "config", "to", "half", "float",
)  # fmt: skip
CALLED_BY_BASES = {
    "Module": _MODULE,
    "LightningModule": _LIGHTNING,
    "LightningDataModule": _LIGHTNING,
    "ModelMixin": (*_MODULE, *_DIFFUSERS),
    "ConfigMixin": _DIFFUSERS,
    "LRScheduler": ("get_", "_get"),
    "_LRScheduler": ("get_", "_get"),
    "Optimizer": ("_", "add_param_group", "state_dict", "load_state_dict"),
    "Dataset": (),
    "IterableDataset": (),
    "Sampler": (),
}
# Classes that call the methods of such a base, as a project names them, and their packages.
RUNNERS = {"LightningModule": ("Trainer", "LightningCLI", "Fabric")}
RUNNING_PACKAGES = ("lightning", "pytorch_lightning")
# Bases whose method ``start`` runs the method ``run`` once for each object, and no other one.
STARTING_BASES = frozenset(("Thread", "Process"))
STARTED = {"run": "start"}
# Calls that import a module by its name, and those that find a function in one by themselves. The
# first of these makes an object of the class that it finds.
IMPORTING_CALLS = frozenset(("import_module", "__import__"))
INSTANTIATING = "instantiate"
BUILT_IN = ("globals", "locals", "vars", "eval", "exec")
LOADERS = (INSTANTIATING, "locate", "get_method", *BUILT_IN)
# Functions that only ask what they are given.
ASKING = frozenset((
    "isinstance", "issubclass", "callable", "hasattr", "id", "type", "repr", "str", "print", "hash",
    "signature", "getsource", "iscoroutinefunction", "isgeneratorfunction", "len", "bool", "super",
    "format",
))  # fmt: skip
# Builtins whose result is their argument in another type, and methods whose result is another text.
LITERAL_CASTS: dict[str, Callable[[Any], object]] = {
    "bool": bool,
    "str": str,
    "int": int,
    "float": float,
}
TEXT_METHODS: dict[str, Callable[[str], str]] = {
    "lower": str.lower, "upper": str.upper, "strip": str.strip
}  # fmt: skip
# Methods of tensors whose result is a tensor.
TENSOR_COPIES = frozenset(("to", "cuda", "cpu", "float", "half", "double", "detach", "clone"))
# Calls that give a field its default by a keyword.
FIELD_CALLS = frozenset(
    ("dataclasses.field", "attr.ib", "attrs.field", "attr.field", "pydantic.Field")
)

# Parsers of the command line, the method that returns its options, and the class of these.
PARSERS = frozenset(("argparse.ArgumentParser", "configargparse.ArgumentParser"))
PARSING, PARSED = "parse_args", "argparse.Namespace"
# Arguments of a decorator that adds an option to a command line: those that leave its values alone.
CLICK_SLOTS = frozenset((FUNCTION, "0", "default", "is_flag", "help", "type", "show_default"))
# Calls that return a container of what is in the one they are given.
HOLDING_CALLS = (
    "dict", "list", "tuple", "set", "OrderedDict", "deque", "sorted", "enumerate", "zip",
)  # fmt: skip
# Methods of containers that return one item, and those that return the items.
ONE_ITEM, ALL_ITEMS = ("get", "pop", "setdefault", "popleft"), ("values", "items", "copy")
