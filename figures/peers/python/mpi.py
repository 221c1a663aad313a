# mpi4py: the programs of message passing, as the ranks of a job.
#
# usage: mpi latency ROUNDS | bandwidth BYTES | collectives CALLS | crowded CALLS
#        mpi idle MESSAGES INTERVAL_US REST_MS | pickle
# Rank 0 prints `name value` lines: times in nanoseconds, and the answers that are checked. A time
# is the median of nine blocks. Buffers go by the calls in capitals, and objects by the others,
# which pickle them.
import pickle
import statistics
import sys
import time
from array import array

BLOCKS = 9
clock = time.monotonic_ns
counts = {"messages": 0, "wrong": 0}


def answer(right):
    counts["messages"] += 1
    counts["wrong"] += not right


def show(rank, name, value):
    if rank == 0:
        print(f"{name} {value:.4f}", flush=True)


def show_answers(rank):
    if rank == 0:
        print(f"messages {counts['messages']}\nwrong {counts['wrong']}", flush=True)


def median(block):
    return statistics.median(block() for _ in range(BLOCKS))


def buffers(world, size, rounds):
    going, coming = bytearray(size), bytearray(size)
    world.Barrier()
    begin = clock()
    for number in range(rounds):
        if world.rank == 0:
            going[0] = going[-1] = number & 0xFF
            world.Send(going, 1)
            world.Recv(coming, 1)
            answer(coming[0] == coming[-1] == (number + 1) & 0xFF)
        else:
            world.Recv(coming, 0)
            going[0] = going[-1] = (coming[0] + 1) & 0xFF
            world.Send(going, 0)
    return (clock() - begin) / (2 * rounds)


def small(world, rounds):
    begin = clock()
    for number in range(rounds):
        if world.rank == 0:
            world.send((True, number, "a short text", (1, 2, 3)), 1)
            answer(world.recv(source=1) == (True, number + 1, "a short text", (1, 2, 3)))
        else:
            flag, value, text, three = world.recv(source=0)
            world.send((flag, value + 1, text, three), 0)
    return (clock() - begin) / (2 * rounds)


def latency(world, rounds):
    for size, fewer in ((1, 1), (1024, 1), (65536, 4)):
        show(world.rank, f"bytes_{size}", median(lambda: buffers(world, size, max(rounds // fewer, 1))))
    show(world.rank, "small", median(lambda: small(world, rounds)))
    show(world.rank, "parked", median(lambda: buffers(world, 1, rounds)))
    show_answers(world.rank)


def stream(world, size, window, windows):
    # Ones, because zeros would be memory that the system has not given yet.
    memory, faults = bytearray(b"\1") * size, array("Q", [0])
    world.Barrier()
    begin = clock()
    for number in range(windows):
        mark = number & 0xFF
        if world.rank == 0:
            memory[0] = memory[-1] = mark
            for request in [world.Isend(memory, 1) for _ in range(window)]:
                request.Wait()
            world.Recv(faults, 1)
            counts["messages"] += window
            counts["wrong"] += faults[0]
        else:
            faults[0] = 0
            for _ in range(window):
                world.Recv(memory, 0)
                faults[0] += not memory[0] == memory[-1] == mark
            world.Send(faults, 0)
    return size * window * windows / (clock() - begin)


def vector(world, rounds):
    numbers = array("d", bytes(4 << 20))
    begin = clock()
    for number in range(rounds):
        if world.rank == 0:
            numbers[0] = number
            world.send(numbers, 1)
            numbers = world.recv(source=1)
            answer(numbers[0] == number + 1)
        else:
            numbers = world.recv(source=0)
            numbers[0] += 1
            world.send(numbers, 0)
    return (clock() - begin) / (2 * rounds)


def bandwidth(world, amount):
    for size, window in ((4096, 64), (65536, 32), (1 << 20, 8), (4 << 20, 4)):
        windows = max(amount // (size * window), 1)
        show(world.rank, f"bytes_{size}", median(lambda: stream(world, size, window, windows)))
    show(world.rank, "vector", median(lambda: vector(world, max(amount // (4 << 20), 1))))
    show_answers(world.rank)


def barrier(world, call):
    world.Barrier()
    return True


def allreduce(world, call):
    own, total = array("Q", [call + world.rank]), array("Q", [0])
    world.Allreduce(own, total)
    return total[0] == world.size * call + world.size * (world.size - 1) // 2


def bcast(world, call, memory=bytearray(65536)):
    if world.rank == call % world.size:
        memory[0] = memory[-1] = call & 0xFF
    world.Bcast(memory, call % world.size)
    return memory[0] == memory[-1] == call & 0xFF


def alltoall(world, call, memory={}):
    if not memory:
        memory["going"], memory["coming"] = (array("Q", bytes(4096 * world.size)) for _ in range(2))
    going, coming = memory["going"], memory["coming"]
    for to in range(world.size):
        going[512 * to] = call + world.rank + to
    world.Alltoall(going, coming)
    return all(coming[512 * sender] == call + sender + world.rank for sender in range(world.size))


def calls(world, collective, count):
    world.Barrier()
    begin = clock()
    for call in range(count):
        answer(collective(world, call))
    return (clock() - begin) / count


def collectives(world, count, each):
    for name, collective, fewer in each:
        show(world.rank, name, median(lambda: calls(world, collective, max(count // fewer, 1))))
    wrong = world.reduce(counts["wrong"])
    if world.rank == 0:
        counts["wrong"] = wrong
    show_answers(world.rank)


def idle(world, count, interval_us, rest_ms):
    time_sent = array("Q", [0])
    world.Barrier()
    if world.rank == 0:
        time.sleep(rest_ms / 1e3)
        world.Send(time_sent, 1)
        for number in range(count):
            time.sleep(interval_us / 1e6)
            time_sent[0] = clock()
            world.Send(time_sent, 1, number & 0xFF)
        late, percent, counts["wrong"] = world.recv(source=1)
        counts["messages"] = count
        late.sort()
        show(0, "median_us", late[(count - 1) // 2] / 1e3)
        show(0, "worst_us", late[int(0.99 * (count - 1))] / 1e3)
        show(0, "cpu", percent)
    else:
        begin, cpu, late = clock(), time.process_time_ns(), []
        world.Recv(time_sent, 0)
        percent = 100 * (time.process_time_ns() - cpu) / (clock() - begin)
        status = MPI.Status()
        for number in range(count):
            world.Recv(time_sent, 0, MPI.ANY_TAG, status)
            late.append(clock() - time_sent[0])
            counts["wrong"] += status.tag != number & 0xFF
        world.send((late, percent, counts["wrong"]), 0)
    show_answers(world.rank)


def pickled(value, rounds):
    begin = clock()
    for _ in range(rounds):
        back = pickle.loads(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))
    each = (clock() - begin) / rounds
    answer(back == value)
    return each


def pickles():
    numbers = [number * 7919 for number in range(50001)]
    rows = [(number, number / 2, f"row {number}", number % 3 == 0) for number in range(5000)]
    for name, value, rounds in (
        ("small", (True, 1 << 40, "a short text", (1, 2, 3)), 2000),
        ("numbers", numbers, 5),
        ("floats", array("d", bytes(1 << 20)), 20),
        ("rows", rows, 5),
    ):
        show(0, name, median(lambda: pickled(value, rounds)))
    show_answers(0)


if __name__ == "__main__":
    program, numbers = sys.argv[1], [int(word) for word in sys.argv[2:]]
    if program == "pickle":
        pickles()
        sys.exit()
    from mpi4py import MPI

    few = (("barrier", barrier, 1), ("allreduce", allreduce, 1))
    if program == "latency":
        latency(MPI.COMM_WORLD, *numbers)
    elif program == "bandwidth":
        bandwidth(MPI.COMM_WORLD, *numbers)
    elif program == "collectives":
        collectives(MPI.COMM_WORLD, *numbers, (*few, ("bcast", bcast, 4), ("alltoall", alltoall, 2)))
    elif program == "crowded":
        collectives(MPI.COMM_WORLD, *numbers, few)
    elif program == "idle":
        idle(MPI.COMM_WORLD, *numbers)
    else:
        sys.exit(f"no such program: {program}")
