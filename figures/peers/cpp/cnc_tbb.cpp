// TBB beside the graphs of steps: tasks, a flow graph, loops with barriers.
//
// usage: cnc-tbb empty|put WORKERS N | chain WORKERS N | tree WORKERS DEPTH | wavefront WORKERS SIDE
//        cnc-tbb function-node WORKERS N
// What each of them does is said in figures/src/child/cnc/steps.rs. Prints `name value` lines: ns
// and wall_ns of one task, ms of all, and the answer. Tasks that do nothing are counted for each
// thread, so that the count costs no exchange between them.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <vector>

#include <tbb/enumerable_thread_specific.h>
#include <tbb/flow_graph.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

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

// The counts of the threads that were there; each registers its own once.
static tbb::enumerable_thread_specific<uint64_t> counts;

static void count() { ++counts.local(); }

static void print_steps() {
    uint64_t sum = 0;
    for (uint64_t part : counts) sum += part;
    std::printf("steps %llu\n", (unsigned long long)sum);
}

static void empty(uint64_t n) {
    timed(n, [&] {
        tbb::task_group group;
        for (uint64_t i = 0; i < n; ++i) group.run([] { count(); });
        group.wait();
    });
    print_steps();
}

static void function_node(uint64_t n) {
    timed(n, [&] {
        tbb::flow::graph graph;
        tbb::flow::function_node<uint32_t> node(graph, tbb::flow::unlimited, [](uint32_t) { count(); });
        for (uint64_t i = 0; i < n; ++i) node.try_put(uint32_t(i));
        graph.wait_for_all();
    });
    print_steps();
}

static void put(uint64_t n) {
    std::vector<std::atomic<uint64_t>> items(n);
    timed(n, [&] {
        tbb::task_group group;
        for (uint64_t i = 0; i < n; ++i)
            group.run([&items, i] { items[i].store(i, std::memory_order_release); });
        group.wait();
    });
    uint64_t sum = 0;
    for (auto& item : items) sum += item.load();
    std::printf("sum %llu\n", (unsigned long long)sum);
}

static void next(tbb::task_group& group, uint64_t left) {
    count();
    if (left > 1) group.run([&group, left] { next(group, left - 1); });
}

static void chain(uint64_t n) {
    timed(n, [&] {
        tbb::task_group group;
        group.run([&] { next(group, n); });
        group.wait();
    });
    print_steps();
}

static void split(tbb::task_group& group, uint64_t left) {
    count();
    if (left == 0) return;
    group.run([&group, left] { split(group, left - 1); });
    group.run([&group, left] { split(group, left - 1); });
}

static void tree(uint64_t depth) {
    timed((2ull << depth) - 1, [&] {
        tbb::task_group group;
        group.run([&] { split(group, depth); });
        group.wait();
    });
    print_steps();
}

// A node for each cell; making the nodes and edges is in the time, as putting the tags is in ours.
static void wavefront(uint64_t side) {
    using node = tbb::flow::continue_node<tbb::flow::continue_msg>;
    std::vector<uint32_t> cells(side * side, 1);
    uint64_t inner = side - 1;
    timed(inner * inner, [&] {
        tbb::flow::graph graph;
        std::vector<std::unique_ptr<node>> nodes(inner * inner);
        for (uint64_t i = 1; i < side; ++i)
            for (uint64_t j = 1; j < side; ++j)
                nodes[(i - 1) * inner + j - 1] =
                    std::make_unique<node>(graph, [&cells, side, i, j](const tbb::flow::continue_msg&) {
                        uint64_t at = i * side + j;
                        cells[at] = cells[at - side - 1] * 3 + cells[at - side] + cells[at - 1];
                        return tbb::flow::continue_msg();
                    });
        for (uint64_t i = 0; i < inner; ++i)
            for (uint64_t j = 0; j < inner; ++j) {
                if (i + 1 < inner) tbb::flow::make_edge(*nodes[i * inner + j], *nodes[(i + 1) * inner + j]);
                if (j + 1 < inner) tbb::flow::make_edge(*nodes[i * inner + j], *nodes[i * inner + j + 1]);
            }
        nodes[0]->try_put(tbb::flow::continue_msg());
        graph.wait_for_all();
    });
    std::printf("corner %u\n", cells[side * side - 1]);
}

int main(int argc, char** argv) {
    if (argc != 4) return 2;
    int workers = std::atoi(argv[2]);
    uint64_t n = std::strtoull(argv[3], nullptr, 10);
    tbb::global_control control(tbb::global_control::max_allowed_parallelism, workers);
    tbb::task_arena arena(workers);
    const char* name = argv[1];
    int status = 0;
    arena.execute([&] {
        if (!std::strcmp(name, "empty")) empty(n);
        else if (!std::strcmp(name, "function-node")) function_node(n);
        else if (!std::strcmp(name, "put")) put(n);
        else if (!std::strcmp(name, "chain")) chain(n);
        else if (!std::strcmp(name, "tree")) tree(n);
        else if (!std::strcmp(name, "wavefront")) wavefront(n);
        else status = 2;
    });
    return status;
}
