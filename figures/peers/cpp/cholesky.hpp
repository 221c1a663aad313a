// The Cholesky factor of a matrix in tiles: the matrix as C++ has it, and the tasks of OpenMP.
// cnc_omp.cpp and cnc_six.cpp include it, and each is compiled with options of its own.
#pragma once

#include <vector>

#include "../c/cholesky.h"

// The lower half of the matrix, in tiles of b rows.
static std::vector<std::vector<double>> matrix(int tiles, int b) {
    std::vector<std::vector<double>> all(number(tiles, 0), std::vector<double>(b * b));
    for (int i = 0; i < tiles; ++i)
        for (int j = 0; j <= i; ++j) make_tile(all[number(i, j)].data(), i, j, tiles, b);
    return all;
}

static std::vector<double*> places(std::vector<std::vector<double>>& all) {
    std::vector<double*> at;
    for (auto& tile : all) at.push_back(tile.data());
    return at;
}

static void cholesky_omp(double** p, int tiles, int b) {
#pragma omp parallel
#pragma omp single
    for (int k = 0; k < tiles; ++k) {
        double* d = p[number(k, k)];
#pragma omp task firstprivate(d) depend(inout : d[0])
        factor(d, b);
        for (int i = k + 1; i < tiles; ++i) {
            double* t = p[number(i, k)];
#pragma omp task firstprivate(t, d) depend(in : d[0]) depend(inout : t[0])
            solve(t, d, b);
        }
        for (int i = k + 1; i < tiles; ++i)
            for (int j = k + 1; j <= i; ++j) {
                double *t = p[number(i, j)], *l = p[number(i, k)], *r = p[number(j, k)];
#pragma omp task firstprivate(t, l, r) depend(in : l[0], r[0]) depend(inout : t[0])
                update(t, l, r, b);
            }
    }
}
