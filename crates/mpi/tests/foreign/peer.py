# Rank 1 of a job of two ranks, in Python: the same as peer.c, with mpi4py.
import sys
from array import array

from mpi4py import MPI

world = MPI.COMM_WORLD
if world.rank != 1 or world.size != 2:
    sys.exit(2)
count = 1
while count > 0:
    status = MPI.Status()
    world.Probe(0, MPI.ANY_TAG, status)
    count = status.Get_count(MPI.UINT64_T)
    numbers = array("Q", [0]) * count
    world.Recv([numbers, count, MPI.UINT64_T], 0, status.Get_tag())
    numbers = array("Q", [2 * number for number in numbers])
    world.Ssend([numbers, count, MPI.UINT64_T], 0, status.Get_tag())
total = array("d", [0])
world.Iallreduce([array("d", [0.5]), MPI.DOUBLE], [total, MPI.DOUBLE], MPI.SUM).Wait()
world.Ibarrier().Wait()
sys.exit(0 if total[0] == 1.75 else 3)
