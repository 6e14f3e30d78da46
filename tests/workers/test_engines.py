"""Engines run calls in other processes and report how each of them ended."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import TESTS
from thresher.errors import UsageError
from thresher.workers import registry
from thresher.workers.local_engine import LocalEngine
from thresher.workers.protocol import LONGEST_LOG, Call, CallResult, Engine, RunningCall

HERE = "support.engine_calls"


@pytest.fixture(
    scope="module", params=["local", pytest.param("ray", marks=[pytest.mark.ray, pytest.mark.slow])]
)
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    if request.param == "ray":
        pytest.importorskip("ray", reason="Ray is not installed")
        patch = pytest.MonkeyPatch()
        patch.setenv("PYTHONPATH", os.pathsep.join([str(TESTS), *sys.path]))
    made = registry.engine(request.param, 2)
    yield made
    made.close()


def ended(engine: Engine, *calls: Call) -> list[CallResult]:
    """Run calls and return their results in the order of the calls."""
    found = list(engine.run(calls))
    assert sorted(one.number for one in found) == list(range(len(calls))), "each is reported once"
    return sorted(found, key=lambda one: one.number)


def call(name: str, deadline: float = 0.0, **arguments: object) -> Call:
    return Call(f"{HERE}:{name}", arguments, deadline)


def test_calls_give_their_results(engine: Engine) -> None:
    found = ended(engine, *(call("double", number=number) for number in range(20)))
    assert [one.result for one in found] == [2 * number for number in range(20)]
    assert not any(one.fault for one in found)


def test_a_failed_call_reports_its_fault_and_the_others_continue(engine: Engine) -> None:
    first, second, third = ended(
        engine, call("double", number=1), call("fail", message="so\nbad"), call("double", number=3)
    )
    assert (first.result, third.result) == (2, 6)
    assert (second.result, second.fault) == (None, "ValueError: so")
    assert "before it failed" in second.log and "Traceback" in second.log


def test_a_call_of_a_missing_function_fails(engine: Engine) -> None:
    (found,) = ended(engine, Call("no_such_module:at_all", {}))
    assert "no_such_module" in found.fault


def test_the_output_of_a_call_is_in_its_log(engine: Engine, capfd: pytest.CaptureFixture[str]) -> None:
    (found,) = ended(engine, call("speak", words="hello"))
    assert "hello" in found.log
    assert "hello" not in "".join(capfd.readouterr())


def test_the_end_of_a_long_output_is_kept(engine: Engine) -> None:
    (found,) = ended(engine, call("chatter", times=100_000))
    assert found.log.endswith("000099998\n000099999\n")
    assert len(found.log) == LONGEST_LOG


def test_a_fault_of_the_machine_is_transient(engine: Engine) -> None:
    full, bad, well = ended(
        engine, call("run_out_of_room"), call("fail", message="so"), call("double", number=1)
    )
    assert (full.is_transient, bad.is_transient, well.is_transient) == (True, False, False)


def test_a_call_that_kills_its_process_fails_and_the_others_continue(engine: Engine) -> None:
    calls = [call("double", number=1), call("die"), *(call("double", number=number) for number in range(5))]
    found = ended(engine, *calls)
    assert "died" in found[1].fault
    assert [one.result for one in found[2:]] == [0, 2, 4, 6, 8]
    assert ended(engine, call("double", number=4))[0].result == 8, "and the engine can be asked again"


def test_a_call_that_ends_its_process_has_failed(engine: Engine) -> None:
    (found,) = ended(engine, call("leave"))
    assert "died" in found.fault


def test_a_call_that_takes_too_long_is_ended(engine: Engine) -> None:
    slow, quick = ended(engine, call("hang", deadline=0.5), call("double", number=2))
    assert "longer than" in slow.fault
    assert quick.result == 4


def test_no_calls_have_no_results(engine: Engine) -> None:
    assert ended(engine) == []


def test_calls_that_are_not_waited_for_are_ended(engine: Engine) -> None:
    running = engine.run([call("pid_of_process"), call("hang")])
    next(running)
    running.close()  # type: ignore[attr-defined]
    assert ended(engine, call("double", number=1))[0].result == 2


def finished(running: RunningCall) -> CallResult:
    while (found := running.poll()) is None:
        time.sleep(0.01)
    return found


def read_number(path: Path) -> int:
    """Return the number of a process once it has written it into a file."""
    while not (path.exists() and path.read_text()):
        time.sleep(0.01)
    return int(path.read_text())


def test_a_lasting_call_runs_beside_others_until_it_ends(engine: Engine, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    lasting = [engine.start(call("wait_for", path=str(mark))) for _ in range(4)]
    assert [running.poll() for running in lasting] == [None] * 4, "more than there are processors"
    assert ended(engine, call("double", number=4))[0].result == 8
    mark.touch()
    assert [finished(running).result for running in lasting] == [str(mark)] * 4


def test_a_lasting_call_reports_its_fault(engine: Engine) -> None:
    assert finished(engine.start(call("fail", message="so"))).fault == "ValueError: so"
    assert "died" in finished(engine.start(call("die"))).fault


def test_a_lasting_call_can_be_killed(engine: Engine, tmp_path: Path) -> None:
    number = tmp_path / "number"
    running = engine.start(call("write_pid_and_hang", path=str(number)))
    at_work = read_number(number)
    running.kill()
    while Path(f"/proc/{at_work}").exists():
        time.sleep(0.01)


def test_started_calls_can_reach_the_address_of_an_engine(engine: Engine) -> None:
    with socket.create_server((engine.address, 0)) as listening:
        place = {"address": engine.address, "port": listening.getsockname()[1]}
        running = engine.start(call("knock", **place))
        with listening.accept()[0] as caller:
            assert caller.recv(5) == b"knock"
        assert not finished(running).fault


def test_processes_that_die_while_idle_are_replaced() -> None:
    engine = LocalEngine(1)
    try:
        (first,) = ended(engine, call("pid_of_process"))
        os.kill(first.result, signal.SIGKILL)
        tries = [ended(engine, call("double", number=3))[0] for _ in range(2)]
        assert tries[-1].result == 6
    finally:
        engine.close()


def test_the_output_of_a_process_that_died_is_in_its_log() -> None:
    engine = LocalEngine(1)
    try:
        (found,) = ended(engine, call("speak_and_die", words="the last words"))
        assert found.log == "the last words\n"
        (found,) = ended(engine, call("crash"))
        assert "SIGABRT" in found.fault and "in crash" in found.log, "the place of the crash is in the log"
        (found,) = ended(engine, call("speak", words="hello"))
        assert found.log == "hello\n"
    finally:
        engine.close()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("rya", "unknown engine 'rya'"),
        ("local:8", "unknown engine 'local:8'"),
        ("ray:", "'' is not HOST:PORT; try ray:10.0.0.1:6379"),
        ("ray:head", "'head' is not HOST:PORT"),
        ("ray:head:port", "'head:port' is not HOST:PORT"),
        ("ray:head:99999", "'head:99999' is not HOST:PORT"),
        ("ray:ray://head:10001", "with --engine ray:auto"),
    ],
)
def test_an_invalid_name_of_an_engine_is_refused_at_once(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        registry.engine(name)


@pytest.mark.timeout(60)  # Ray itself would try for a quarter of an hour
def test_an_address_without_a_listener_is_refused_at_once() -> None:
    pytest.importorskip("ray", reason="Ray is not installed")
    with socket.create_server(("127.0.0.1", 0)) as gone:
        address = "{}:{}".format(*gone.getsockname())
    with pytest.raises(
        UsageError, match=f"no Ray cluster answers at {address} .*ray status --address {address}"
    ):
        registry.engine(f"ray:{address}")


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_an_address_of_another_service_is_tried_once() -> None:
    pytest.importorskip("ray", reason="Ray is not installed")
    patience = {
        f"RAY_{name}": "1" for name in ("py_gcs_connect_timeout_s", "gcs_rpc_server_connect_timeout_s")
    }
    environment = os.environ | patience | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with socket.create_server(("", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        asked = f"from thresher.workers import registry; registry.engine('ray:{address}')"
        command = [sys.executable, "-c", asked]
        shown = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert f"UsageError: no Ray cluster answers at {address}" in shown.stderr


def test_a_negative_number_of_processes_is_refused() -> None:
    with pytest.raises(UsageError, match="--processes must be at least 0, got -1"):
        LocalEngine(-1)


def test_workers_ignore_signals_that_all_processes_get(tmp_path: Path) -> None:
    """They are ignored while a process is loading, too."""
    number, mark = tmp_path / "number", tmp_path / "mark"
    engine = LocalEngine(1)
    try:
        running = engine.start(call("write_pid_and_wait", path=str(number), mark=str(mark)))
        (child,) = engine.pids()
        while not (number.exists() and number.read_text()):
            assert running.poll() is None
            for name in (signal.SIGINT, signal.SIGTERM):
                os.kill(child, name)
            time.sleep(0.01)
        for name in (signal.SIGINT, signal.SIGTERM):
            os.kill(child, name)
        mark.touch()
        assert finished(running).result == str(mark)
    finally:
        engine.close()


LEADER = """
import sys
from thresher.workers.protocol import Call
from thresher.workers.local_engine import LocalEngine

engine = LocalEngine(1)
call = Call("support.engine_calls:write_pid_and_hang", {"path": sys.argv[2]})
if sys.argv[1] == "ends":
    running = engine.start(call)
    sys.stdin.readline()
else:
    list(engine.run([call]))
"""


@pytest.mark.parametrize("kind", ["short", "ends"])
def test_workers_end_with_the_process_of_their_engine(tmp_path: Path, kind: str) -> None:
    """The process is killed, or ends without closing its engine."""
    number = tmp_path / "number"
    command = [sys.executable, "-c", LEADER, kind, str(number)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE) as leader:
        at_work = read_number(number)
        if kind == "ends":
            leader.communicate(b"\n")
        else:
            leader.kill()
    while Path(f"/proc/{at_work}").exists():
        time.sleep(0.01)


def test_no_process_is_left_behind() -> None:
    engine = LocalEngine(2)
    found = ended(engine, call("pid_of_process"), call("pid_of_process"))
    engine.close()
    for one in found:
        with pytest.raises(ProcessLookupError):
            os.kill(one.result, 0)


def test_readers_of_all_processes_come_from_one_fork_server() -> None:
    engine = LocalEngine(2)
    try:
        found = ended(engine, *(call(name) for name in ("readers_parent", "pid_of_process") * 3))
    finally:
        engine.close()
    assert not any(one.fault for one in found), found
    parents, processes = ({one.result for one in part} for part in (found[::2], found[1::2]))
    assert len(parents) == 1 and not parents & processes
