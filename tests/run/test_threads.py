"""Tests of programs in many threads and processes: shared, parallel, forked.

As a script it does the work of eight threads without pytest: `make threads` runs it under
ThreadSanitizer.
"""

import subprocess
import sys
import threading
import time

import numpy as np

import stagedad as sd
from stagedad.run import live_counts

THREADS = 8
ROUNDS = 24


def powers(x, y):
    for _ in range(6):
        x = (x + y) * y
    return x


def shared_program():
    """A program of untyped inputs, which plans for whatever lengths and layouts it meets."""
    graph = sd.Graph()
    x, y = graph.add_input("f64[?]"), graph.add_input("f64[?]")
    c = x
    for _ in range(6):
        c = graph.insert("mul", graph.insert("add", c, y), y)
    total = graph.insert("sum", graph.insert("mul", c, y))
    for value in (c, total, graph.insert("max", graph.insert("sin", c))):
        graph.register_output(value)
    return sd.compile(graph)


def in_threads(work):
    """Run `work(seed)` in eight threads at once; raise what one of them raised."""
    barrier = threading.Barrier(THREADS)
    errors = []

    def run(seed):
        try:
            barrier.wait()
            work(seed)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    assert live_counts()["busy_arenas"] == 0


def test_eight_threads_share_a_program():
    program = shared_program()

    def work(seed):
        random = np.random.default_rng(seed)
        for turn in range(ROUNDS):
            n = (3, 40_000)[turn % 2] + turn % 3
            x, y = random.random(n), random.random(n)
            if turn % 4 == 3:
                x = np.repeat(x, 2)[::2]
            wanted = powers(x, y)
            result, total, _ = program(x, y)
            np.testing.assert_array_equal(result, wanted)
            np.testing.assert_allclose(total, np.sum(wanted * y), rtol=1e-12)

    in_threads(work)


def test_eight_threads_run_into_buffers_of_their_own():
    program = shared_program()

    def work(seed):
        random = np.random.default_rng(seed)
        outputs = (np.empty(20_000), np.empty(()), np.empty(()))
        for _ in range(ROUNDS // 2):
            x, y = random.random(20_000), random.random(20_000)
            program.run((x, y), outputs)
            np.testing.assert_array_equal(outputs[0], powers(x, y))

    in_threads(work)


def test_eight_threads_share_a_transformed_function():
    step = sd.value_and_grad(lambda x: np.sum(x**3), max_signatures=4)

    def work(seed):
        random = np.random.default_rng(seed)
        for turn in range(ROUNDS):
            x = random.standard_normal(1 + (seed + turn) % 7)
            value, gradient = step(x)
            np.testing.assert_allclose(value, np.sum(x**3), rtol=1e-12)
            np.testing.assert_allclose(gradient, 3 * x**2, rtol=1e-12)

    in_threads(work)


def test_errors_and_emptied_caches_beside_runs():
    graph = sd.Graph()
    x, i = graph.add_input("f64[?]"), graph.add_input("i64[?]")
    graph.register_output(graph.insert("take", graph.insert("exp", x), i))
    program = sd.compile(graph)
    step = sd.grad(lambda x: np.sum(np.exp(x)))

    def work(seed):
        for turn in range(ROUNDS):
            x = np.full(3 + turn % 2, float(seed))
            if seed == 0 and turn % 6 == 5:
                sd.clear_caches()
            if seed % 2:
                (found,) = program(x, np.array([0, 2]))
                np.testing.assert_allclose(found, np.exp(x[:2]))
                np.testing.assert_allclose(step(x), np.exp(x))
            else:
                problem = "none"
                try:
                    program(x, np.array([0, 99]))
                except IndexError as error:
                    problem = str(error)
                assert "99" in problem

    in_threads(work)


def test_threads_trace_at_the_same_time():
    def work(seed):
        for turn in range(ROUNDS // 4):
            scale = float(seed * 100 + turn)
            function = sd.value_and_grad(lambda x, scale=scale: np.sum(np.sin(x) * scale))
            x = np.linspace(0, 1, 5)
            value, gradient = function(x)
            np.testing.assert_allclose(value, np.sum(np.sin(x)) * scale)
            np.testing.assert_allclose(gradient, np.cos(x) * scale)

    in_threads(work)


def test_runs_of_large_arrays_overlap():
    """While two threads run one program, a third sees both at it: none holds the GIL."""
    program = shared_program()
    x, y = np.random.default_rng(0).random((2, 400_000))
    program(x, y)
    stop = threading.Event()

    def work():
        while not stop.is_set():
            program(x, y)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    most, until = 0, time.monotonic() + 60
    while most < 2 and time.monotonic() < until:
        most = max(most, live_counts()["busy_arenas"])
    stop.set()
    for thread in threads:
        thread.join()
    assert most == 2


def python(script):
    """Run a script in a process of its own; returns what it printed."""
    ran = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", script],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


FORK = """
import os, threading
import numpy as np
import stagedad as sd

step = sd.value_and_grad(lambda x: np.sum(np.exp(x) * x))
small, large = np.linspace(0, 1, 5), np.linspace(0, 1, 50_000)
wanted = [step(x) for x in (small, large)]
stop = threading.Event()

def beside():
    while not stop.is_set():
        step(large)

thread = threading.Thread(target=beside)
if {threads}:
    thread.start()
child = os.fork()
if child == 0:
    ok = all(
        np.array_equal(a, c) and np.array_equal(b, d)
        for (a, b), (c, d) in zip(wanted, [step(x) for x in (small, large)])
    )
    # New signatures are traced, planned and run in the child, in threads too.
    found = []
    other = threading.Thread(target=lambda: found.append(step(np.linspace(0, 1, 9))))
    other.start()
    other.join()
    ok = ok and len(found) == 1 and sd.grad(lambda x: x * x)(3.0) == 6
    sd.clear_caches()
    ok = ok and step(small)[0] == wanted[0][0]
    os._exit(0 if ok else 1)
_, status = os.waitpid(child, 0)
stop.set()
if {threads}:
    thread.join()
assert step(small)[0] == wanted[0][0]
print("child", os.waitstatus_to_exitcode(status))
"""


def test_a_forked_process_goes_on():
    assert python(FORK.format(threads=False)) == "child 0\n"


def test_a_fork_beside_runs_in_other_threads():
    assert python(FORK.format(threads=True)) == "child 0\n"


def test_importing_starts_nothing():
    script = """
import os, sys, threading
import numpy
known = set(sys.modules)
def threads():
    tasks = "/proc/self/task"
    return threading.active_count(), len(os.listdir(tasks)) if os.path.isdir(tasks) else 0
before = threads(), dict(os.environ), sys.getswitchinterval()
import stagedad, stagedad.numpy
assert (threads(), dict(os.environ), sys.getswitchinterval()) == before
heavy = {"numpy.random", "multiprocessing", "subprocess", "asyncio", "concurrent.futures",
         "ctypes", "tomllib", "logging", "unittest", "http", "email", "scipy"}
print(sorted(heavy & (set(sys.modules) - known)))
"""
    assert python(script) == "[]\n"


if __name__ == "__main__":
    for test in (
        test_eight_threads_share_a_program,
        test_eight_threads_run_into_buffers_of_their_own,
        test_eight_threads_share_a_transformed_function,
        test_errors_and_emptied_caches_beside_runs,
        test_threads_trace_at_the_same_time,
        test_runs_of_large_arrays_overlap,
    ):
        print(test.__name__, flush=True)
        test()
