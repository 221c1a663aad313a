/* Rank 1 of a job of two ranks, in C. Rank 0 is a program of `selvedge_mpi::libmpi`: the function
 * `foreign` of `libmpi.rs`. */
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank != 1 || size != 2)
        return 2;
    /* Each message comes back with its tag, and with its numbers doubled. An empty one is the last. */
    for (int count = 1; count > 0;) {
        MPI_Status status;
        MPI_Probe(0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_UINT64_T, &count);
        uint64_t *numbers = malloc(count * sizeof *numbers + 1);
        MPI_Recv(numbers, count, MPI_UINT64_T, 0, status.MPI_TAG, MPI_COMM_WORLD, &status);
        for (int i = 0; i < count; i++)
            numbers[i] *= 2;
        MPI_Ssend(numbers, count, MPI_UINT64_T, 0, status.MPI_TAG, MPI_COMM_WORLD);
        free(numbers);
    }
    /* The collectives of rank 0 are nonblocking ones, which a blocking one does not match. */
    double half = 0.5, sum = 0;
    MPI_Request request;
    MPI_Iallreduce(&half, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return sum == 1.75 ? 0 : 3;
}
