// The Cholesky factor of a matrix in tiles: the matrix and the kernels, in C that is C++ too.
// mpi_graphs.c and cpp/cholesky.hpp include it, and each is compiled with options of its own. What
// the kernels do is said in figures/src/child/cnc/kernels.rs.
#pragma once

#include <math.h>
#include <stdlib.h>

static void factor(double *t, int b) {
    for (int c = 0; c < b; ++c) {
        double square = 0;
        for (int k = 0; k < c; ++k) square += t[c * b + k] * t[c * b + k];
        double root = sqrt(t[c * b + c] - square);
        t[c * b + c] = root;
        for (int r = c + 1; r < b; ++r) {
            double dot = 0;
            for (int k = 0; k < c; ++k) dot += t[r * b + k] * t[c * b + k];
            t[r * b + c] = (t[r * b + c] - dot) / root;
        }
        for (int k = c + 1; k < b; ++k) t[c * b + k] = 0;
    }
}

static void solve(double *t, const double *d, int b) {
    for (int r = 0; r < b; ++r)
        for (int c = 0; c < b; ++c) {
            double dot = 0;
            for (int k = 0; k < c; ++k) dot += t[r * b + k] * d[c * b + k];
            t[r * b + c] = (t[r * b + c] - dot) / d[c * b + c];
        }
}

static void update(double *t, const double *left, const double *right, int b) {
    double *turned = (double *)calloc((size_t)b * b, sizeof(double));
    for (int r = 0; r < b; ++r)
        for (int c = 0; c < b; ++c) turned[c * b + r] = right[r * b + c];
    for (int r = 0; r < b; ++r)
        for (int k = 0; k < b; ++k) {
            double f = left[r * b + k];
            const double *from = &turned[k * b];
            double *to = &t[r * b];
            for (int c = 0; c < b; ++c) to[c] -= f * from[c];
        }
    free(turned);
}

// The number of a tile in the lower half, by rows.
static int number(int i, int j) { return i * (i + 1) / 2 + j; }

static double element(int size, int row, int column) {
    double distance = (double)abs(row - column) / (double)size;
    return row == column ? (double)size : 1.0 / (1.0 + 1.41421356237309504880 * distance);
}

// Writes a tile of a matrix with this number of tiles on each side, which have b rows.
static void make_tile(double *t, int i, int j, int tiles, int b) {
    for (int n = 0; n < b * b; ++n) t[n] = element(tiles * b, i * b + n / b, j * b + n % b);
}
