// C over MPI, written by hand: a Cholesky factor and a wavefront in tiles, and a loop that counts
// primes, as the ranks of a job.
//
// usage: mpi-graphs cholesky TILES BLOCK | waves TILES BLOCK | primes BELOW
// The kernels are those of figures/src/child/cnc (kernels.rs and edges.rs), operation by operation,
// and this file is compiled for any x86-64 and without contraction, as those are. So the answers
// have the same bits. Rank 0 prints `name value` lines: ms, and the answer.
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cholesky.h"

static int rank, ranks;

static void *room(size_t bytes) {
    void *memory = calloc(1, bytes);
    if (!memory)
        MPI_Abort(MPI_COMM_WORLD, 1);
    return memory;
}

// The time on all ranks since they began together.
static double ended(double began) {
    MPI_Barrier(MPI_COMM_WORLD);
    return (MPI_Wtime() - began) * 1e3;
}

static double begin(void) {
    MPI_Barrier(MPI_COMM_WORLD);
    return MPI_Wtime();
}

static void print(double ms, uint64_t answer) {
    if (rank == 0)
        printf("ms %.4f\nanswer %llu\n", ms, (unsigned long long)answer);
}

static int row_owner(int row) { return row % ranks; }

// A column of the factor, which all ranks get. A rank's own tiles are not copied.
struct column {
    double **tiles, **rooms;
    MPI_Request *requests;
    int count;
};

static struct column new_column(int tiles, int b) {
    struct column column = {room(tiles * sizeof(double *)), room(tiles * sizeof(double *)),
                            room(tiles * sizeof(MPI_Request)), tiles};
    for (int i = 0; i < tiles; i++) {
        column.rooms[i] = room((size_t)b * b * sizeof(double));
        column.requests[i] = MPI_REQUEST_NULL;
    }
    return column;
}

// Makes the column k of the factor: the tile on the diagonal goes to all ranks, each solves its own
// tiles below, and they are on their way to all ranks.
static void start_column(double **own, struct column *column, int k, int b) {
    for (int i = k; i < column->count; i++)
        column->tiles[i] = row_owner(i) == rank ? own[number(i, k)] : column->rooms[i];
    if (row_owner(k) == rank)
        factor(column->tiles[k], b);
    MPI_Bcast(column->tiles[k], b * b, MPI_DOUBLE, row_owner(k), MPI_COMM_WORLD);
    for (int i = k + 1; i < column->count; i++) {
        if (row_owner(i) == rank)
            solve(column->tiles[i], column->tiles[k], b);
        MPI_Ibcast(column->tiles[i], b * b, MPI_DOUBLE, row_owner(i), MPI_COMM_WORLD, &column->requests[i]);
    }
}

// Changes the rank's tiles of a column by an earlier column of the factor.
static void change(double **own, const struct column *by, int j, int b) {
    for (int i = j; i < by->count; i++)
        if (row_owner(i) == rank)
            update(own[number(i, j)], by->tiles[i], by->tiles[j], b);
}

// The next column of the factor is made before the rest is changed, and is under way meanwhile.
static void factor_all(double **own, struct column *both, int tiles, int b) {
    start_column(own, &both[0], 0, b);
    for (int k = 0; k < tiles; k++) {
        struct column *column = &both[k % 2], *next = &both[(k + 1) % 2];
        MPI_Waitall(tiles, column->requests, MPI_STATUSES_IGNORE);
        if (k + 1 == tiles)
            break;
        change(own, column, k + 1, b);
        start_column(own, next, k + 1, b);
        for (int j = k + 2; j < tiles; j++) {
            int done;
            change(own, column, j, b);
            MPI_Testall(tiles, next->requests, &done, MPI_STATUSES_IGNORE);
        }
    }
}

static uint64_t mixed(uint64_t sum, const double *tile, int numbers) {
    for (int n = 0; n < numbers; n++) {
        uint64_t word;
        memcpy(&word, &tile[n], sizeof word);
        sum = (sum ^ word) * 0x9E3779B97F4A7C15u;
        sum = sum << 29 | sum >> 35;
    }
    return sum;
}

// Rank 0 gets the tiles of the factor in their order.
static uint64_t factor_answer(double **own, double *coming, int tiles, int b) {
    uint64_t sum = 1;
    for (int i = 0; i < tiles; i++)
        for (int j = 0; j <= i; j++) {
            double *tile = own[number(i, j)];
            if (rank == 0 && !tile) {
                tile = coming;
                MPI_Recv(tile, b * b, MPI_DOUBLE, row_owner(i), 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            } else if (rank != 0 && tile) {
                MPI_Send(tile, b * b, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
            }
            if (rank == 0)
                sum = mixed(sum, tile, b * b);
        }
    return sum >> 16 | 1;
}

static void cholesky(int tiles, int b) {
    double **own = room(number(tiles, 0) * sizeof(double *));
    for (int i = rank; i < tiles; i += ranks)
        for (int j = 0; j <= i; j++) {
            own[number(i, j)] = room((size_t)b * b * sizeof(double));
            make_tile(own[number(i, j)], i, j, tiles, b);
        }
    struct column both[2] = {new_column(tiles, b), new_column(tiles, b)};
    double began = begin();
    factor_all(own, both, tiles, b);
    double ms = ended(began);
    print(ms, factor_answer(own, both[0].rooms[0], tiles, b));
}

// The cells of a tile by its edges, which become those of the next tiles. An edge above a tile
// begins with the cell before it.
static void wave(uint32_t *above, uint32_t *before, int b) {
    for (int r = 0; r < b; r++) {
        uint32_t north_west = above[0], west = before[r];
        above[0] = west;
        for (int c = 1; c <= b; c++) {
            uint32_t north = above[c];
            above[c] = west = north_west * 3 + north + west;
            north_west = north;
        }
        before[r] = west;
    }
}

// A rank has the columns of tiles from `first` to below `end`. In each row of tiles the last column
// of cells goes to the next rank.
static void waves(int tiles, int b) {
    int first = (tiles * rank + ranks - 1) / ranks, end = (tiles * (rank + 1) + ranks - 1) / ranks;
    uint32_t *above = room((size_t)(b + 1) * tiles * sizeof(uint32_t)), *before = room(b * sizeof(uint32_t));
    double began = begin();
    uint64_t own = 0, sum = 0;
    for (int n = 0; n < (b + 1) * tiles; n++)
        above[n] = 1;
    for (int i = 0; i < tiles; i++) {
        if (rank > 0)
            MPI_Recv(before, b, MPI_UINT32_T, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int r = 0; rank == 0 && r < b; r++)
            before[r] = 1;
        for (int j = first; j < end; j++) {
            uint32_t *of_tile = &above[(b + 1) * j];
            wave(of_tile, before, b);
            for (int c = 1; c <= b; c++)
                own += of_tile[c];
        }
        if (rank + 1 < ranks)
            MPI_Send(before, b, MPI_UINT32_T, rank + 1, 0, MPI_COMM_WORLD);
    }
    double ms = ended(began);
    MPI_Reduce(&own, &sum, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    print(ms, sum);
}

static int is_prime(uint32_t n) {
    for (uint32_t divisor = 3; divisor < n; divisor += 2)
        if (n % divisor == 0)
            return 0;
    return 1;
}

// The odd numbers from 3, a part on each rank in turn.
static void primes(uint32_t below) {
    enum { PART = 64 };
    double began = begin();
    uint64_t own = 0, sum = 0;
    uint32_t count = (below - 2) / 2;
    for (uint32_t part = rank * PART; part < count; part += ranks * PART)
        for (uint32_t n = part; n < part + PART && n < count; n++)
            own += is_prime(2 * n + 3);
    MPI_Reduce(&own, &sum, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    print(ended(began), sum + 1);
}

int main(int count, char **words) {
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const char *name = count > 2 ? words[1] : "";
    int first = count > 2 ? atoi(words[2]) : 0, second = count > 3 ? atoi(words[3]) : 0;
    int is_known = 1;
    if (!strcmp(name, "cholesky") && count == 4)
        cholesky(first, second);
    else if (!strcmp(name, "waves") && count == 4)
        waves(first, second);
    else if (!strcmp(name, "primes") && count == 3)
        primes(first);
    else
        is_known = 0;
    if (!is_known)
        fprintf(stderr, "mpi-graphs: no such program\n");
    MPI_Finalize();
    return is_known ? 0 : 2;
}
