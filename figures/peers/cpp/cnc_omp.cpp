// OpenMP tasks beside the graphs of steps.
//
// usage: cnc-omp empty|put WORKERS N | tree WORKERS DEPTH | wavefront WORKERS SIDE
//        cnc-omp cholesky WORKERS TILES BLOCK
// What each of them does is said in figures/src/child/cnc. Prints `name value` lines: ns and
// wall_ns of one task, ms of all, and the answer. Tasks that do nothing are counted for each
// thread, so that the count costs no exchange between them.
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <vector>

#include <omp.h>

#include "cholesky.hpp"

static double cpu_ns() {
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

template <class Work>
static void timed(uint64_t operations, Work work) {
    double cpu = cpu_ns();
    auto wall = std::chrono::steady_clock::now();
    work();
    double wall_ns = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - wall).count();
    cpu = cpu_ns() - cpu;
    std::printf("ns %.4f\nwall_ns %.4f\nms %.4f\n", cpu / operations, wall_ns / operations, wall_ns / 1e6);
}

struct alignas(128) Count {
    uint64_t steps = 0;
};
static Count counts[64];

static void count() { ++counts[omp_get_thread_num()].steps; }

static void print_steps() {
    uint64_t sum = 0;
    for (auto& part : counts) sum += part.steps;
    std::printf("steps %llu\n", (unsigned long long)sum);
}

static void empty(uint64_t n) {
    timed(n, [&] {
#pragma omp parallel
#pragma omp single
        for (uint64_t i = 0; i < n; ++i) {
#pragma omp task
            count();
        }
    });
    print_steps();
}

static void put(uint64_t n) {
    std::vector<uint64_t> items(n);
    timed(n, [&] {
#pragma omp parallel
#pragma omp single
        for (uint64_t i = 0; i < n; ++i) {
#pragma omp task firstprivate(i) shared(items)
            items[i] = i;
        }
    });
    uint64_t sum = 0;
    for (uint64_t item : items) sum += item;
    std::printf("sum %llu\n", (unsigned long long)sum);
}

static void split(uint64_t left) {
    count();
    if (left == 0) return;
#pragma omp task firstprivate(left)
    split(left - 1);
#pragma omp task firstprivate(left)
    split(left - 1);
}

static void tree(uint64_t depth) {
    timed((2ull << depth) - 1, [&] {
#pragma omp parallel
#pragma omp single
        split(depth);
    });
    print_steps();
}

static void wavefront(uint64_t side) {
    std::vector<uint32_t> cells(side * side, 1);
    uint32_t* c = cells.data();
    timed((side - 1) * (side - 1), [&] {
#pragma omp parallel
#pragma omp single
        for (uint64_t i = 1; i < side; ++i)
            for (uint64_t j = 1; j < side; ++j) {
                uint64_t at = i * side + j;
#pragma omp task firstprivate(at) depend(in : c[at - side], c[at - 1]) depend(out : c[at])
                c[at] = c[at - side - 1] * 3 + c[at - side] + c[at - 1];
            }
    });
    std::printf("corner %u\n", cells[side * side - 1]);
}

static void cholesky(int tiles, int b) {
    int size = tiles * b;
    auto all = matrix(tiles, b);
    auto at = places(all);
    timed(1, [&] { cholesky_omp(at.data(), tiles, b); });
    // The compiler may contract and reorder, so the bits are not those of the others.
    int wrong = 0;
    for (int row = 0; row < size; row += 7)
        for (int column = 0; column <= row; column += 13) {
            double product = 0;
            for (int k = 0; k <= column; ++k)
                product += at[number(row / b, k / b)][row % b * b + k % b] *
                           at[number(column / b, k / b)][column % b * b + k % b];
            wrong += std::fabs(product - element(size, row, column)) > 1e-9 * size;
        }
    std::printf("wrong %d\n", wrong);
}

int main(int argc, char** argv) {
    if (argc < 4) return 2;
    omp_set_num_threads(std::atoi(argv[2]));
    const char* name = argv[1];
    uint64_t n = std::strtoull(argv[3], nullptr, 10);
    if (!std::strcmp(name, "empty")) empty(n);
    else if (!std::strcmp(name, "put")) put(n);
    else if (!std::strcmp(name, "tree")) tree(n);
    else if (!std::strcmp(name, "wavefront")) wavefront(n);
    else if (!std::strcmp(name, "cholesky") && argc == 5) cholesky(int(n), std::atoi(argv[4]));
    else return 2;
    return 0;
}
