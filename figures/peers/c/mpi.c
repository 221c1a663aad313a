// C over MPI: the programs of message passing, as the ranks of a job.
//
// usage: mpi latency ROUNDS | bandwidth BYTES | collectives CALLS | crowded CALLS
//        mpi waiting-posted THREADS MESSAGES | waiting-any THREADS MESSAGES
//        mpi idle MESSAGES INTERVAL_US REST_MS BUSY | trapezoid TRAPEZOIDS
// Rank 0 prints `name value` lines: times in nanoseconds, and the answers that are checked. A time
// is the median of nine blocks. The buffers of a rank's sends and receives are not the same ones.
#define _GNU_SOURCE
#include <math.h>
#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { BLOCKS = 9, LARGEST = 4 << 20 };

static int rank, ranks;
static uint64_t messages, wrong;

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(double *values, int count, double part) {
    qsort(values, count, sizeof(double), compare);
    return values[(int)(part * (count - 1))];
}

static void print(const char *name, double value) {
    if (rank == 0)
        printf("%s %.4f\n", name, value);
}

static void print_answers(void) {
    if (rank == 0)
        printf("messages %lu\nwrong %lu\n", (unsigned long)messages, (unsigned long)wrong);
}

static void *room(size_t bytes) {
    void *memory = malloc(bytes);
    if (!memory)
        MPI_Abort(MPI_COMM_WORLD, 1);
    memset(memory, 0, bytes);
    return memory;
}

// Messages of `size` bytes to and fro. Their first and last byte are the number of the round, and
// one more on the way back.
static double to_and_fro(size_t size, uint64_t rounds) {
    uint8_t *going = room(size), *coming = room(size);
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = now_ns();
    for (uint64_t round = 0; round < rounds; round++) {
        if (rank == 0) {
            going[0] = going[size - 1] = round;
            MPI_Send(going, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(coming, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            uint8_t expected = round + 1;
            messages++;
            wrong += coming[0] != expected || coming[size - 1] != expected;
        } else {
            MPI_Recv(coming, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            going[0] = coming[0] + 1;
            if (size > 1)
                going[size - 1] = coming[size - 1] + 1;
            MPI_Send(going, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        }
    }
    double each = (now_ns() - begin) / (2 * rounds);
    free(going);
    free(coming);
    return each;
}

static double ways(size_t size, uint64_t rounds) {
    double blocks[BLOCKS];
    for (int block = 0; block < BLOCKS; block++)
        blocks[block] = to_and_fro(size, rounds);
    return quantile(blocks, BLOCKS, 0.5);
}

static void latency(uint64_t rounds) {
    print("bytes_1", ways(1, rounds));
    print("bytes_1024", ways(1024, rounds));
    print("bytes_65536", ways(65536, rounds / 4));
    // As many bytes as the small value has in memory: a flag, a number, three more, a short text.
    print("small", ways(40, rounds));
    // A receive is a receive: C has no thread that could be parked.
    print("parked", ways(1, rounds));
    print_answers();
}

// Messages of `size` bytes in one direction. The receiver answers each window of messages.
static double stream(size_t size, int window, uint64_t windows) {
    uint8_t *memory = room(size);
    MPI_Request requests[64];
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = now_ns();
    for (uint64_t number = 0; number < windows; number++) {
        uint64_t faults = 0;
        if (rank == 0) {
            memory[0] = memory[size - 1] = number;
            for (int i = 0; i < window; i++)
                MPI_Isend(memory, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &requests[i]);
            MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
            MPI_Recv(&faults, 1, MPI_UINT64_T, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            messages += window;
            wrong += faults;
        } else {
            for (int i = 0; i < window; i++) {
                MPI_Recv(memory, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                faults += memory[0] != (uint8_t)number || memory[size - 1] != (uint8_t)number;
            }
            MPI_Send(&faults, 1, MPI_UINT64_T, 0, 0, MPI_COMM_WORLD);
        }
    }
    // Bytes a nanosecond are gigabytes a second.
    double rate = (double)size * window * windows / (now_ns() - begin);
    free(memory);
    return rate;
}

static void bandwidth(uint64_t bytes) {
    const struct { const char *name; size_t size; int window; } streams[] = {
        {"bytes_4096", 4096, 64}, {"bytes_65536", 65536, 32},
        {"bytes_1048576", 1 << 20, 8}, {"bytes_4194304", LARGEST, 4},
    };
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++) {
        uint64_t windows = bytes / (streams[i].size * streams[i].window);
        double blocks[BLOCKS];
        for (int block = 0; block < BLOCKS; block++)
            blocks[block] = stream(streams[i].size, streams[i].window, windows ? windows : 1);
        print(streams[i].name, quantile(blocks, BLOCKS, 0.5));
    }
    uint64_t rounds = bytes / LARGEST;
    print("vector", ways(LARGEST, rounds ? rounds : 1));
    print_answers();
}

enum collective { BARRIER, ALLREDUCE, BCAST, ALLTOALL };

// One call after the other, and how long one takes.
static double calls(enum collective which, uint64_t count) {
    enum { BROADCAST = 65536, EACH = 512 };
    uint8_t *memory = room(BROADCAST);
    uint64_t *going = room(EACH * 8 * ranks), *coming = room(EACH * 8 * ranks);
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = now_ns();
    for (uint64_t call = 0; call < count; call++) {
        int root = call % ranks;
        uint64_t own = call + rank, sum = 0;
        switch (which) {
        case BARRIER:
            MPI_Barrier(MPI_COMM_WORLD);
            break;
        case ALLREDUCE:
            MPI_Allreduce(&own, &sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
            wrong += sum != ranks * call + ranks * (ranks - 1) / 2;
            break;
        case BCAST:
            if (rank == root)
                memory[0] = memory[BROADCAST - 1] = call;
            MPI_Bcast(memory, BROADCAST, MPI_BYTE, root, MPI_COMM_WORLD);
            wrong += memory[0] != (uint8_t)call || memory[BROADCAST - 1] != (uint8_t)call;
            break;
        case ALLTOALL:
            for (int to = 0; to < ranks; to++)
                going[to * EACH] = own + to;
            MPI_Alltoall(going, EACH, MPI_UINT64_T, coming, EACH, MPI_UINT64_T, MPI_COMM_WORLD);
            for (int from = 0; from < ranks; from++)
                wrong += coming[from * EACH] != call + from + rank;
            break;
        }
        messages++;
    }
    double each = (now_ns() - begin) / count;
    free(memory);
    free(going);
    free(coming);
    return each;
}

static double calls_of(enum collective which, uint64_t count) {
    double blocks[BLOCKS];
    for (int block = 0; block < BLOCKS; block++)
        blocks[block] = calls(which, count);
    return quantile(blocks, BLOCKS, 0.5);
}

// Rank 0 prints what was wrong on any rank.
static void print_all_answers(void) {
    uint64_t own = wrong;
    MPI_Reduce(&own, &wrong, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    print_answers();
}

static void collectives(uint64_t count) {
    print("barrier", calls_of(BARRIER, count));
    print("allreduce", calls_of(ALLREDUCE, count));
    print("bcast", calls_of(BCAST, count / 4));
    print("alltoall", calls_of(ALLTOALL, count / 2));
    print_all_answers();
}

// More ranks than CPUs.
static void crowded(uint64_t count) {
    print("barrier", calls_of(BARRIER, count));
    print("allreduce", calls_of(ALLREDUCE, count));
    print_all_answers();
}

static uint32_t next_tag(uint64_t *state, uint64_t tags) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (*state >> 33) % tags;
}

// Rank 0 sends numbers with one of many tags, and each comes back with the next number.
static void ask(uint64_t tags, uint64_t count, const char *name) {
    uint64_t state = 1;
    double begin = now_ns();
    for (uint64_t number = 0; number < count; number++) {
        int tag = next_tag(&state, tags);
        uint64_t answer;
        MPI_Send(&number, 1, MPI_UINT64_T, 1, tag, MPI_COMM_WORLD);
        MPI_Recv(&answer, 1, MPI_UINT64_T, 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        messages++;
        wrong += answer != number + 1;
    }
    print(name, (now_ns() - begin) / count);
}

// A posted receive for each tag.
static void answer_posted(uint64_t tags, uint64_t count) {
    MPI_Request *requests = room(tags * sizeof *requests);
    uint64_t *numbers = room(tags * sizeof *numbers);
    for (uint64_t tag = 0; tag < tags; tag++)
        MPI_Irecv(&numbers[tag], 1, MPI_UINT64_T, 0, tag, MPI_COMM_WORLD, &requests[tag]);
    MPI_Barrier(MPI_COMM_WORLD);
    for (uint64_t i = 0; i < count; i++) {
        int tag;
        MPI_Waitany(tags, requests, &tag, MPI_STATUS_IGNORE);
        uint64_t answer = numbers[tag] + 1;
        MPI_Irecv(&numbers[tag], 1, MPI_UINT64_T, 0, tag, MPI_COMM_WORLD, &requests[tag]);
        MPI_Send(&answer, 1, MPI_UINT64_T, 0, tag, MPI_COMM_WORLD);
    }
    for (uint64_t tag = 0; tag < tags; tag++) {
        MPI_Cancel(&requests[tag]);
        MPI_Wait(&requests[tag], MPI_STATUS_IGNORE);
    }
    free(requests);
    free(numbers);
}

// One receive that takes any tag.
static void answer_any(uint64_t count) {
    MPI_Barrier(MPI_COMM_WORLD);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t number;
        MPI_Status status;
        MPI_Recv(&number, 1, MPI_UINT64_T, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        number++;
        MPI_Send(&number, 1, MPI_UINT64_T, 0, status.MPI_TAG, MPI_COMM_WORLD);
    }
}

static void waiting(int posted, uint64_t tags, uint64_t count) {
    const struct { const char *name; uint64_t tags; } parts[] = {{"one", 1}, {"many", tags}};
    for (int part = 0; part < 2; part++) {
        if (rank == 0) {
            MPI_Barrier(MPI_COMM_WORLD);
            ask(parts[part].tags, count, parts[part].name);
        } else if (posted) {
            answer_posted(parts[part].tags, count);
        } else {
            answer_any(count);
        }
    }
    print_answers();
}

static atomic_int is_over;

static void *keep_busy(void *unused) {
    while (!atomic_load_explicit(&is_over, memory_order_relaxed))
        ;
    return unused;
}

static double cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

// A rank waits for a message that is long in coming, and then for messages that come now and then.
static void idle(uint64_t count, uint64_t interval_us, uint64_t rest_ms, uint64_t busy) {
    pthread_t threads[16];
    double *late = room(count * sizeof *late), sent, percent = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        usleep(rest_ms * 1000);
        sent = now_ns();
        MPI_Send(&sent, 1, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD);
        for (uint64_t i = 0; i < busy && i < 16; i++)
            pthread_create(&threads[i], NULL, keep_busy, NULL);
        for (uint64_t i = 0; i < count; i++) {
            usleep(interval_us);
            sent = now_ns();
            MPI_Send(&sent, 1, MPI_DOUBLE, 1, i & 0xff, MPI_COMM_WORLD);
        }
        atomic_store(&is_over, 1);
        for (uint64_t i = 0; i < busy && i < 16; i++)
            pthread_join(threads[i], NULL);
        MPI_Recv(late, count, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(&percent, 1, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(&wrong, 1, MPI_UINT64_T, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        messages = count;
        print("median_us", quantile(late, count, 0.5) / 1e3);
        print("worst_us", quantile(late, count, 0.99) / 1e3);
        print("cpu", percent);
    } else {
        double begin = now_ns(), cpu = cpu_ns();
        MPI_Recv(&sent, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        percent = 100 * (cpu_ns() - cpu) / (now_ns() - begin);
        for (uint64_t i = 0; i < count; i++) {
            MPI_Status status;
            MPI_Recv(&sent, 1, MPI_DOUBLE, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            late[i] = now_ns() - sent;
            wrong += status.MPI_TAG != (int)(i & 0xff);
        }
        MPI_Send(late, count, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
        MPI_Send(&percent, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
        MPI_Send(&wrong, 1, MPI_UINT64_T, 0, 0, MPI_COMM_WORLD);
    }
    print_answers();
    free(late);
}

// The area under the sine from 0 to 999 pi: each rank adds its trapezoids up.
static void trapezoid(uint64_t count) {
    enum { PIECE = 4096 };
    const double h = 999 * M_PI / count;
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = now_ns(), sum = 0, area = 0;
    uint64_t first = count * rank / ranks, last = count * (rank + 1) / ranks;
    // In pieces with a short index, which a compiler can turn into several numbers at once.
    for (uint64_t i = first + 1; i < last; i += PIECE) {
        int piece = last - i < PIECE ? last - i : PIECE;
        double from = i;
        for (int j = 0; j < piece; j++)
            sum += sin((from + j) * h);
    }
    sum += (sin(first * h) + sin(last * h)) / 2;
    sum *= h;
    MPI_Reduce(&sum, &area, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    print("seconds", (now_ns() - begin) / 1e9);
    if (rank == 0)
        printf("micro_area %.0f\n", area * 1e6);
}

int main(int count, char **words) {
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    uint64_t n[4] = {0};
    for (int i = 2; i < count && i < 6; i++)
        n[i - 2] = strtoull(words[i], NULL, 10);
    const char *name = count > 1 ? words[1] : "";
    int is_known = 1;
    if (!strcmp(name, "latency"))
        latency(n[0]);
    else if (!strcmp(name, "bandwidth"))
        bandwidth(n[0]);
    else if (!strcmp(name, "collectives"))
        collectives(n[0]);
    else if (!strcmp(name, "crowded"))
        crowded(n[0]);
    else if (!strcmp(name, "waiting-posted"))
        waiting(1, n[0], n[1]);
    else if (!strcmp(name, "waiting-any"))
        waiting(0, n[0], n[1]);
    else if (!strcmp(name, "idle"))
        idle(n[0], n[1], n[2], n[3]);
    else if (!strcmp(name, "trapezoid"))
        trapezoid(n[0]);
    else
        is_known = 0;
    if (!is_known)
        fprintf(stderr, "mpi: no such program: %s\n", name);
    MPI_Finalize();
    return is_known ? 0 : 2;
}
