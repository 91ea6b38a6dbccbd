"""Names of data-parallel training: what wraps a model, what splits the data, what tells a rank."""

from __future__ import annotations

# Modules that average the gradients of all ranks, each of which is to see other data:
# torch/nn/parallel/distributed.py, "the user is responsible for" sharding the input;
# torch/distributed/fsdp/fully_sharded_data_parallel.py.
DATA_PARALLEL = frozenset((
    "torch.nn.parallel.DistributedDataParallel",
    "torch.nn.parallel.distributed.DistributedDataParallel",
    "torch.distributed.fsdp.FullyShardedDataParallel",
    "torch.distributed.fsdp.fully_sharded_data_parallel.FullyShardedDataParallel",
))  # fmt: skip
# Functions that return the rank of a process, or the number of ranks (torch.distributed, horovod,
# accelerate), and the variables that torch/distributed/run.py sets for each process.
RANK_CALLS = frozenset(("get_rank", "get_world_size", "get_local_rank", "get_node_local_rank"))
RANK_VARIABLES = frozenset((
    "RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "SLURM_PROCID",
    "SLURM_LOCALID", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
))  # fmt: skip
# Keywords of torch and options of its launcher that a rank or the number of ranks is given under:
# torch.distributed.init_process_group, DistributedSampler, torch/distributed/launch.py.
RANK_WORDS = frozenset(("rank", "local_rank", "world_size", "num_replicas", "process_index",
                        "num_processes", "global_rank", "node_rank"))  # fmt: skip
# Classes and functions that split data over ranks: torch/utils/data/distributed.py,
# datasets/distributed.py, torchdata, webdataset, and loaders that their own library splits.
SPLITTING = frozenset((
    "DistributedSampler", "split_dataset_by_node", "shard", "sharding_filter", "split_by_node",
    "apply_sharding", "DistributedBatchSampler", "prepare_data_loader", "setup_dataloaders",
    "BatchSamplerShard", "IterableDatasetShard", "StatefulDistributedSampler",
))  # fmt: skip
