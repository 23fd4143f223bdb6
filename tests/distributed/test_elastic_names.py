"""Names of `distributed.elastic` beside PyTorch's: meetings, numbers, events, stores, samplers."""

from __future__ import annotations

import importlib
import os
import queue
import subprocess
import sys
import time
from typing import Any

from tests.support.differential import differential, outcome


def module(T: Any, name: str) -> Any:
    return importlib.import_module(f"{T.__name__}.distributed.elastic.{name}")


@differential
def test_settings_and_ways_to_meet(T: Any) -> Any:
    api = module(T, "rendezvous")
    made = api.RendezvousParameters("mine", "host:1", "run", 1, 2, a="1", b="yes", c="x", d=0)
    registry = api.RendezvousHandlerRegistry()

    class Handler(api.RendezvousHandler):
        def get_backend(self) -> str:
            return "mine"

        def next_rendezvous(self) -> Any: ...
        def is_closed(self) -> bool:
            return False

        def set_closed(self) -> None: ...
        def num_nodes_waiting(self) -> int:
            return 0

        def get_run_id(self) -> str:
            return made.run_id

        def shutdown(self) -> bool:
            return True

    first = outcome(lambda: registry.create_handler(made))
    registry.register("mine", lambda params: Handler())
    found = registry.create_handler(made)
    errors = ("Closed", "Connection", "GracefulExit", "State", "Timeout")
    store = T.distributed.HashStore()
    info = api.RendezvousStoreInfo.build(0, store, "localhost", 1234)
    known = api.RendezvousInfo(store, 0, 1, info)
    return (
        [made.get("a"), made.get("z"), made.get("z", 3), made.get_as_int("a"), made.get_as_int("z", 4)],
        [made.get_as_bool("b"), made.get_as_bool("d"), made.get_as_bool("z")],
        [outcome(lambda: made.get_as_int("c")), outcome(lambda: made.get_as_bool("c"))],
        [
            outcome(lambda case=case: api.RendezvousParameters(*case))
            for case in (("", "h", "i", 1, 2), ("s", "h", "i", 0, 2), ("s", "h", "i", 3, 2))
        ],
        [first, outcome(lambda: registry.register("mine", lambda params: Handler()))],
        outcome(lambda: registry.register("", lambda params: Handler())),
        [found.get_run_id(), found.use_agent_store],
        all(issubclass(getattr(api, f"Rendezvous{name}Error"), api.RendezvousError) for name in errors),
        [info.master_addr, info.master_port, known.rank, known.world_size, known.bootstrap_store_info is info],
    )


@differential
def test_numbers(T: Any) -> Any:
    metrics = module(T, "metrics")
    seen: list[Any] = []

    class Handler(metrics.MetricHandler):
        def emit(self, metric_data: Any) -> None:
            value = "some" if metric_data.name.endswith("ms") else metric_data.value
            seen.append((metric_data.group_name, metric_data.name.rpartition("<locals>.")[2], value))

    metrics.configure(Handler(), "mine")
    metrics.put_metric("x", 3, "mine")
    metrics.put_metric("y", 4)
    metrics.getStream("mine").add_value("z", 5)

    @metrics.prof(group="mine")
    def works() -> int:
        return 5

    @metrics.prof(group="mine")
    def fails() -> None:
        raise ValueError

    return works(), outcome(fails), seen, metrics.get_elapsed_time_ms(0) > 0


@differential
def test_events(T: Any) -> Any:
    events = module(T, "events")
    made = events.Event("start", events.EventSource.AGENT, metadata={"a": 1})
    meeting = events.RdzvEvent("name", "run", "text", "host", 1, events.NodeState.INIT)
    events.record(made)
    events.construct_and_record_rdzv_event("run", "text", events.NodeState.RUNNING)
    return (
        made.serialize(), str(made), events.Event.deserialize(made.serialize()) == made, meeting.serialize(),
        events.RdzvEvent.deserialize(str(meeting)) == meeting, [each.value for each in events.NodeState],
        type(events.get_logging_handler()).__name__,
    )  # fmt: skip


@differential
def test_stores_and_states(T: Any) -> Any:
    utils, states = module(T, "utils.store"), module(T, "utils.process_state")
    store = T.distributed.HashStore()
    for number in range(2):
        store.set(f"p/{number}", f"v{number}")
    store.add("p//finished/num_members", 1)  # another process has read them already
    return (
        utils.get_all(store, 0, "p/", 2), utils.synchronize(store, b"q", 0, 1, "k"), utils.barrier(store, 1, "b"),
        states.read_proc_state(os.getpid()) is not None, states.read_proc_state(999_999_999),
        states.is_uninterruptible_state("D"), states.is_uninterruptible_state("S"),
        module(T, "utils.distributed").get_free_port() > 0,
    )  # fmt: skip


@differential
def test_data_of_several_epochs(T: Any) -> Any:
    data = module(T, "utils.data")
    found = []
    for rank in range(2):
        sampler = data.ElasticDistributedSampler(list(range(11)), 2, rank, start_index=2)
        sampler.set_epoch(3)
        found.append([len(sampler), list(sampler)])
    return (
        found, list(data.CyclingIterator(3, lambda epoch: iter([epoch, epoch + 10]), 1)),
        outcome(lambda: data.ElasticDistributedSampler([1], 2, 1, start_index=9)),
    )  # fmt: skip


@differential
def test_places_of_meetings(T: Any) -> Any:
    parse = module(T, "rendezvous.utils").parse_rendezvous_endpoint
    texts = ("host:29500", "host", "", None, "host:", "host:99999999", "[::1]:5", " host : 5", "a b")
    return [outcome(lambda text=text: parse(text, 7)) for text in texts]


@differential
def test_timers(T: Any) -> Any:
    timer = module(T, "timer")
    waiting: Any = queue.Queue()
    client = timer.LocalTimerClient(waiting)
    server = timer.LocalTimerServer(waiting, max_interval=0.01)
    refused = outcome(lambda: timer.expires(1).__enter__())
    timer.configure(client)
    with timer.expires(100, "block"):
        inside = waiting.qsize()
    requests = module(T, "timer.local_timer").MultiprocessingRequestQueue(waiting)
    sizes = requests.size()
    server.register_timers(requests.get(2, 0.1))
    left = server.get_expired_timers(time.time() + 1000)
    server.register_timers([timer.TimerRequest(*each) for each in ((1, "a", 5), (2, "b", 50), (1, "c", 6))])
    early = {worker: [each.scope_id for each in found] for worker, found in server.get_expired_timers(10).items()}
    server.clear_timers({1})
    late = {worker: [each.scope_id for each in found] for worker, found in server.get_expired_timers(100).items()}
    return refused[1:], inside, sizes, left, early, late, timer.TimerRequest(1, "a", 5) == timer.TimerRequest(1, "a", 5)


def test_a_process_whose_time_is_over_is_ended() -> None:
    timer = importlib.import_module("flambeau.distributed.elastic.timer")
    waiting: Any = queue.Queue()
    server = timer.LocalTimerServer(waiting, max_interval=0.05)
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    server.start()
    try:
        waiting.put(timer.TimerRequest(process.pid, "block", time.time() - 1))
        assert process.wait(60) == -9
    finally:
        server.stop()
        process.kill()
