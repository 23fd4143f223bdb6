"""The processes that work together: the group of all of them, and groups of some."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from .._core.names.same_as import same_as
from .._core.process.caller import warn_user
from .._core.process.locks import new_lock
from .._core.text.inherited_docs import documented_like
from ._engines import Engine
from ._group_calls import GroupCalls
from .constants import default_pg_timeout
from .stores import PrefixStore, Store

__all__ = ["Backend", "GroupMember", "ProcessGroup", "group"]


class Backend(str):
    """The name of what moves the bytes, in lower case: 'gloo', 'nccl', 'mpi'.

    Programs ask for 'gloo' where tensors are on the CPU, and mean whatever serves them there: here that is Flambeau's
    own engine over sockets and shared memory. 'nccl' is NCCL, for tensors on GPUs, beside it; 'mpi' is MPI, for
    programs that `mpiexec` started.

    Args:
        name (str): the name.

    Example:
        >>> dist.Backend("GLOO")
        'gloo'
    """

    __slots__ = ()
    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL, FAKE = "undefined", "gloo", "nccl", "ucc", "mpi", "xccl", "fake"
    backend_list = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, FAKE]  # noqa: RUF012  (PyTorch's, which backends extend)
    default_device_backend_map = {"cpu": GLOO, "cuda": NCCL}  # noqa: RUF012

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise ValueError(f"Backend constructor parameter must be string-ish: {name}")
        return str.__new__(cls, name.lower())

    @classmethod
    def register_backend(
        cls, name: str, func: Any, extended_api: bool = False, devices: Any = None, group_options: Any = None
    ) -> None:
        """Backends of PyTorch are compiled against it."""
        raise NotImplementedError(
            f"the backend {name!r} cannot be registered: Flambeau has 'gloo' (its own engine), 'nccl' and 'mpi'"
        )


class _Current(threading.local):
    """What stands in for the process in this thread: tests have several ranks in one process."""

    world: World | None = None


_current = _Current()


class World:
    """The groups of this process."""

    def __init__(self) -> None:
        self.default: ProcessGroup | None = None
        self.groups: dict[str, ProcessGroup] = {}
        self.store: Store | None = None
        self.made = 0
        """Groups made so far: all processes make them in the same order, and so number them alike."""
        self.starts = 0

    def enter(self) -> None:
        """Let this thread be a process of its own; None of the others sees it."""
        _current.world = self

    @staticmethod
    def leave() -> None:
        """Let this thread be a part of its process again."""
        _current.world = None


_of_process = World()
_initialisation = new_lock()


def world() -> World:
    """The groups of this process, or of this thread where it plays one."""
    return _current.world or _of_process


class ProcessGroup(GroupCalls):
    """Some of the processes, which call collectives together.

    Make one by `init_process_group` or `new_group`.

    Args:
        engine (Engine): what moves the bytes.
        ranks (sequence of ints): the ranks of its members.
        name (str): its name.
        timeout (timedelta): how long calls wait.
        store (Store): the store that its members share.
        desc (str): a description. Default: `"undefined"`.

    Example:
        >>> dist.group.WORLD.size(), dist.group.WORLD.rank()
        (2, 0)
    """

    def __init__(
        self, engine: Engine, ranks: Sequence[int], name: str, timeout: timedelta, store: Store, desc: str = "undefined"
    ) -> None:
        self._engine = engine
        self._ranks = list(ranks)
        self._rank_of = {rank: index for index, rank in enumerate(self._ranks)}
        self._name = name
        self._timeout = timeout
        self._store = store
        self._desc = desc
        self.bound_device_id: Any = None

    def rank(self) -> int:
        """The rank of this process in the group."""
        return self._engine.rank

    def size(self) -> int:
        """How many processes the group has."""
        return len(self._ranks)

    def name(self) -> str:
        """The name of what moves the bytes."""
        return self._engine.name

    group_name: str = same_as("_name", "The name of the group, the same in all of its processes.")
    group_desc: str = same_as("_desc", "What the group is for.")

    def get_group_store(self) -> Store:
        """A store for the processes of the group."""
        return self._store

    def _get_backend_name(self) -> str:
        return self._engine.name

    def _get_backend(self, device: Any) -> ProcessGroup:
        return self

    def set_timeout(self, timeout: timedelta) -> None:
        """How long its collectives may take from now on."""
        self._timeout = timeout

    def shutdown(self) -> None:
        """Leave the group and close its connections."""
        self._engine.close()

    abort = shutdown

    def __repr__(self) -> str:
        return f"<ProcessGroup {self._name}: rank {self.rank()} of {self.size()}, by {self.name()}>"


class _NotAMember(int):
    """What `new_group` returns to processes that are not in the group."""


class _GroupMemberType(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:
        """The group of all processes."""
        return world().default

    @WORLD.setter
    def WORLD(cls, value: ProcessGroup | None) -> None:
        world().default = value


class GroupMember(metaclass=_GroupMemberType):
    """The group of all processes, and what stands for a group in which this process is not.

    Example:
        >>> dist.GroupMember.WORLD.rank()
        0
    """

    NON_GROUP_MEMBER = -100


class group(metaclass=_GroupMemberType):
    """The group of all processes: `group.WORLD`.

    Example:
        >>> dist.group.WORLD.size()
        2
    """


# ----- asking ---------------------------------------------------------------------------------------------------


def default_group() -> ProcessGroup:
    """The group of all processes, which must exist."""
    found = world().default
    if found is None:
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
    return found


def group_of(given: Any) -> ProcessGroup:
    """The group that is meant: None is all processes."""
    if given is None:
        return default_group()
    if not isinstance(given, ProcessGroup):
        raise TypeError(f"a process group is expected, not {type(given).__name__}")
    return given


def is_member(given: Any) -> bool:
    """Whether this process is in the group."""
    return given is None or given != GroupMember.NON_GROUP_MEMBER


def warn_not_in_group(what: str) -> None:
    """Tell that a call does nothing here."""
    rank = default_group().rank()
    warn_user(f"Running {what} on global rank {rank} which does not belong to the given group.")


def is_initialized() -> bool:
    """Whether the group of all processes exists.

    Returns:
        bool: whether it does.

    Example:
        >>> dist.is_initialized()
        True
    """
    return world().default is not None


def get_rank(group: ProcessGroup | None = None) -> int:
    """The rank of this process in a group; -1 if it is in none of it.

    Args:
        group (ProcessGroup, optional): the processes that take part; None means all.

    Returns:
        int: the rank.

    Example:
        >>> dist.get_rank()
        0
    """
    return group_of(group).rank() if is_member(group) else -1


def get_world_size(group: ProcessGroup | None = None) -> int:
    """How many processes a group has; -1 if this one is in none of it.

    Args:
        group (ProcessGroup, optional): the processes that take part; None means all.

    Returns:
        int: the number.

    Example:
        >>> dist.get_world_size()
        2
    """
    return group_of(group).size() if is_member(group) else -1


def rank_and_size() -> tuple[int, int] | None:
    """The rank of this process among all, and how many there are; None before the process group is made."""
    return (get_rank(), get_world_size()) if is_initialized() else None


def get_backend(group: ProcessGroup | None = None) -> Backend:
    """What moves the bytes of a group: 'gloo', 'nccl' or 'mpi'.

    Args:
        group (ProcessGroup, optional): the processes that take part; None means all.

    Returns:
        Backend: its name.

    Example:
        >>> dist.get_backend()
        'gloo'
    """
    if not is_member(group):
        raise ValueError("Invalid process group specified: this process is not in it")
    return Backend(group_of(group).name())


def get_backend_config(group: ProcessGroup | None = None) -> str:
    """What moves the bytes, by device.

    Args:
        group (ProcessGroup, optional): the processes that take part; None means all.

    Returns:
        str: such as "cpu:gloo".

    Example:
        >>> isinstance(dist.get_backend_config(), str)
        True
    """
    name = get_backend(group)
    return f"cpu:{name},cuda:{name}"


def get_default_backend_for_device(device: Any) -> str:
    """What moves the bytes of tensors on a device.

    Args:
        device: a device or its type.

    Returns:
        str: its name.

    Example:
        >>> dist.get_default_backend_for_device("cpu")
        'gloo'
    """
    kind = getattr(device, "type", str(device).partition(":")[0])
    found = Backend.default_device_backend_map.get(kind)
    if found is None:
        raise ValueError(f"Default backend not registered for device : {device}")
    return found


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """The rank among all processes of a member of a group.

    Args:
        group (ProcessGroup): the group.
        group_rank (int): the rank in the group.

    Returns:
        int: the rank among all.

    Example:
        >>> dist.get_global_rank(dist.group.WORLD, 1)
        1
    """
    if group is world().default:
        return group_rank
    ranks = group_of(group)._ranks
    if not 0 <= group_rank < len(ranks):
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return ranks[group_rank]


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """The rank in a group of one of all processes.

    Args:
        group (ProcessGroup): the group.
        global_rank (int): the rank among all.

    Returns:
        int: the rank in the group.

    Example:
        >>> dist.get_group_rank(dist.group.WORLD, 1)
        1
    """
    if group is world().default:
        return global_rank
    found = group_of(group)._rank_of.get(global_rank)
    if found is None:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return found


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """The ranks, among all processes, of the members of a group.

    Args:
        group (ProcessGroup, optional): the processes that take part; None means all.

    Returns:
        list of ints: the ranks.

    Example:
        >>> dist.get_process_group_ranks(dist.group.WORLD)
        [0, 1]
    """
    return list(group_of(group)._ranks)


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The rank among the processes of this machine, which the launcher says.

    Args:
        fallback_rank (int, optional): what to return where no launcher says it; None raises an error.

    Returns:
        int: the rank.

    Example:
        >>> isinstance(dist.get_node_local_rank(fallback_rank=0), int)
        True
    """
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError("LOCAL_RANK is not in the environment. Consider passing fallback_rank to get_node_local_rank")


def get_pg_count() -> int:
    """How many groups there are.

    Returns:
        int: the number.

    Example:
        >>> dist.get_pg_count() >= 1
        True
    """
    return len(world().groups)


# ----- making ---------------------------------------------------------------------------------------------------


def checked_timeout(timeout: Any) -> timedelta:
    """A timeout as PyTorch wants it."""
    if timeout is None:
        return default_pg_timeout
    if not isinstance(timeout, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")
    return timeout


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Store | None = None,
    group_name: str = "",
    pg_options: Any | None = None,
    device_id: Any = None,
    _ranks: list[int] | None = None,
) -> None:
    """Meet all other processes: by a store, by a URL (`env://`, `tcp://`, `file://`), or as a launcher arranged it.

    Args:
        backend (str, optional): what moves the bytes: "gloo", "nccl" or "mpi"; None chooses by the devices.
        init_method (str, optional): the URL; None means "env://", the variables that `flambeau launch` sets.
        timeout (timedelta, optional): how long to wait before an error.
        world_size (int): how many processes there are; -1 asks the launcher. Default: `-1`.
        rank (int): the number of this one; -1 asks the launcher. Default: `-1`.
        store (Store, optional): a store that all processes share, in place of `init_method`.
        group_name (str): a name. Default: `""`.
        pg_options: not used.
        device_id: the device of this process.

    Example:
        >>> dist.is_initialized()                   # each process called init_process_group before
        True
    """
    from ._start import started_engine

    here = world()
    with _initialisation if here is _of_process else new_lock():
        if here.default is not None:
            raise ValueError("trying to initialize the default process group twice!")
        limit = checked_timeout(timeout)
        if store is not None and init_method is not None:
            raise AssertionError("Cannot specify both init_method and store.")
        if store is not None and not (world_size > 0 and rank >= 0):
            raise AssertionError("world_size must be positive and rank must be non-negative if using store")
        here.starts += 1
        engine, found_store = started_engine(
            backend, init_method, limit, world_size, rank, store, f"start{here.starts}/{group_name}"
        )
        here.store = found_store
        here.made = 0
        made = ProcessGroup(engine, range(engine.size), "0", limit, PrefixStore("group0", found_store), "default_pg")
        made.bound_device_id = device_id
        here.default = made
        here.groups = {"0": made}


def new_group(
    ranks: Any = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
    sort_ranks: bool = True,
) -> Any:
    """A group of some of the processes. All processes call it, those that are not in it too.

    Args:
        ranks: the ranks of its members; None means all.
        timeout (timedelta, optional): how long to wait before an error.
        backend (str, optional): what moves the bytes: "gloo", "nccl" or "mpi".
        pg_options: not used.
        use_local_synchronization (bool): whether only members call it. Default: `False`.
        group_desc (str, optional): a description of the group.
        device_id: the device of this process.
        sort_ranks (bool): whether ranks in the group follow those among all. Default: `True`.

    Returns:
        the group; for processes outside of it a value that collectives ignore.

    Example:
        >>> group = dist.new_group([0])
        >>> dist.get_rank(group)
        0
    """
    whole = default_group()
    here = world()
    if timeout is None:
        limit = whole._timeout
    else:
        limit = checked_timeout(timeout)
    members = list(range(whole.size())) if ranks is None else [int(rank) for rank in ranks]
    if sort_ranks:
        members = sorted(members)
    if len(members) > whole.size():
        raise ValueError(
            "the new group's world size should be less or equal to the world size set by init_process_group"
        )
    for rank in members:
        if not 0 <= rank < whole.size():
            raise ValueError("The new group's rank should be within the world_size set by init_process_group")
    if len(set(members)) != len(members):
        raise ValueError(f"a process is in a group once, and the ranks are {members}")
    here.made += 1
    number = here.made
    engine = whole._engine.subgroup(members, number, limit.total_seconds())
    if engine is None:
        return GroupMember.NON_GROUP_MEMBER
    assert here.store is not None
    store = PrefixStore(f"group{number}", here.store)
    made = ProcessGroup(engine, members, str(number), limit, store, group_desc or "undefined")
    here.groups[made.group_name] = made
    return made


def new_subgroups(
    group_size: int | None = None,
    group: ProcessGroup | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Groups of equal size, of processes that follow each other: the own one, and all.

    Args:
        group_size (int, optional): how many members each has; None means the processes of a machine.
        group (ProcessGroup, optional): the processes that take part; None means all.
        timeout (timedelta, optional): how long to wait before an error.
        backend (str, optional): what moves the bytes: "gloo", "nccl" or "mpi".
        pg_options: not used.
        group_desc (str, optional): a description of the group.

    Returns:
        tuple[Any, list]: the group of this process, and all of them.

    Example:
        >>> own, every = dist.new_subgroups(1)
        >>> len(every)
        2
    """
    size = get_world_size()
    if group_size is None:
        group_size = int(os.environ.get("LOCAL_WORLD_SIZE", size))
    if group_size <= 0:
        raise ValueError(f"The arg 'group_size' ({group_size}) must be positive")
    if size < group_size:
        raise ValueError(f"The arg 'group_size' ({group_size}) must not exceed the world size ({size})")
    if size % group_size:
        raise ValueError(f"The world size ({size}) must be divisible by '{group_size=}'")
    lists = [list(range(start, start + group_size)) for start in range(0, size, group_size)]
    return new_subgroups_by_enumeration(lists, timeout, backend, pg_options, group_desc)


@documented_like(new_subgroups)
def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]],
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Groups with these members: the own one, None if there is none, and all.

    Args:
        ranks_per_subgroup_list (Sequence[Sequence[int]]): the ranks of each group.

    Example:
        >>> own, every = dist.new_subgroups_by_enumeration([[0], [1]])
        >>> dist.get_process_group_ranks(own)
        [0]
    """
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    everyone = [rank for ranks in ranks_per_subgroup_list for rank in ranks]
    if len(set(everyone)) != len(everyone):
        raise ValueError("a process is in one of the groups only: some rank is in several of them")
    mine, groups, own = get_rank(), [], None
    for ranks in ranks_per_subgroup_list:
        made = new_group(ranks, timeout, backend, pg_options, group_desc=group_desc)
        groups.append(made)
        if mine in ranks:
            own = made
    return own, groups


def split_group(
    parent_pg: ProcessGroup | None = None,
    split_ranks: list[list[int]] | None = None,
    timeout: timedelta | None = None,
    pg_options: Any | None = None,
    group_desc: str | None = None,
    backend: Any = None,
) -> ProcessGroup | None:
    """The part of a group in which this process is, if its members are divided so.

    Args:
        parent_pg (ProcessGroup, optional): the group; None means that of all processes.
        split_ranks (list[list[int]], optional): the ranks of each part.
        timeout (timedelta, optional): how long to wait before an error.
        pg_options: not used.
        group_desc (str, optional): a description of the group.
        backend: what moves the bytes: "gloo", "nccl" or "mpi".

    Returns:
        the part, or None.

    Example:
        >>> group = dist.split_group(split_ranks=[[0], [1]])
        >>> dist.get_world_size(group)
        1
    """
    parent = group_of(parent_pg)
    if not split_ranks:
        raise ValueError("split_ranks cannot be None or empty")
    own = None
    for ranks in split_ranks:
        made = new_group([parent._ranks[rank] for rank in ranks], timeout, group_desc=group_desc)
        if parent.rank() in ranks:
            own = made
    return own


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Leave a group; without one, all of them.

    Args:
        group (ProcessGroup, optional): the processes that take part; None means all.

    Example:
        >>> group = dist.new_group([0, 1])
        >>> dist.destroy_process_group(group)
    """
    here = world()
    if not is_member(group):
        return
    found = here.default if group is None else group
    if found is None:
        raise AssertionError("Process group cannot be None")
    if found is here.default:
        here.default = None
        here.groups = {}
        found._engine.close()
    elif here.groups.pop(found.group_name, None) is None:
        raise ValueError("Invalid process group specified")
