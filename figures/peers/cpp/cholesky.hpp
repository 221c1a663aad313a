// The Cholesky factor of a matrix in tiles: the matrix, the kernels, and the tasks of OpenMP.
// cnc_omp.cpp and cnc_six.cpp include it, and each is compiled with options of its own. What the
// kernels do is said in figures/src/child/cnc/kernels.rs.
#pragma once

#include <cmath>
#include <cstdlib>
#include <vector>

static void factor(double* t, int b) {
    for (int c = 0; c < b; ++c) {
        double square = 0;
        for (int k = 0; k < c; ++k) square += t[c * b + k] * t[c * b + k];
        double root = std::sqrt(t[c * b + c] - square);
        t[c * b + c] = root;
        for (int r = c + 1; r < b; ++r) {
            double dot = 0;
            for (int k = 0; k < c; ++k) dot += t[r * b + k] * t[c * b + k];
            t[r * b + c] = (t[r * b + c] - dot) / root;
        }
        for (int k = c + 1; k < b; ++k) t[c * b + k] = 0;
    }
}

static void solve(double* t, const double* d, int b) {
    for (int r = 0; r < b; ++r)
        for (int c = 0; c < b; ++c) {
            double dot = 0;
            for (int k = 0; k < c; ++k) dot += t[r * b + k] * d[c * b + k];
            t[r * b + c] = (t[r * b + c] - dot) / d[c * b + c];
        }
}

static void update(double* t, const double* left, const double* right, int b) {
    std::vector<double> turned(b * b);
    for (int r = 0; r < b; ++r)
        for (int c = 0; c < b; ++c) turned[c * b + r] = right[r * b + c];
    for (int r = 0; r < b; ++r)
        for (int k = 0; k < b; ++k) {
            double f = left[r * b + k];
            const double* from = &turned[k * b];
            double* to = &t[r * b];
            for (int c = 0; c < b; ++c) to[c] -= f * from[c];
        }
}

static int number(int i, int j) { return i * (i + 1) / 2 + j; }

static double element(int size, int row, int column) {
    double distance = double(std::abs(row - column)) / double(size);
    return row == column ? double(size) : 1.0 / (1.0 + 1.41421356237309504880 * distance);
}

// The lower half of the matrix, in tiles of b rows.
static std::vector<std::vector<double>> matrix(int tiles, int b) {
    std::vector<std::vector<double>> all(number(tiles, 0), std::vector<double>(b * b));
    for (int i = 0; i < tiles; ++i)
        for (int j = 0; j <= i; ++j) {
            auto& tile = all[number(i, j)];
            for (int n = 0; n < b * b; ++n) tile[n] = element(tiles * b, i * b + n / b, j * b + n % b);
        }
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
