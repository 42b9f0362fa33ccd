/* Serves a simulator to pasta. One header without dependencies; docs/pipe.md has the protocol.
 *
 *     #include "pasta.h"
 *     static double sample(int d, const double *x, uint64_t *rng, double *gradient) {
 *         double error = x[0] + log(pasta_uniform(rng));
 *         gradient[0] += error;                        // add to it
 *         return error * error / 2;                    // the loss
 *     }
 *     int main(void) { return pasta_serve(sample, 1, "mean of an exponential law"); }   // 1: the losses are true
 *
 * Write what people shall read to stderr; stdout belongs to pasta. */
#pragma once
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef double pasta_sample(int d, const double *x, uint64_t *rng, double *gradient);

static uint64_t pasta_word(uint64_t *rng) {             /* splitmix64 */
    uint64_t z = (*rng += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static double pasta_uniform(uint64_t *rng) { return ((pasta_word(rng) >> 12) + 0.5) / 4503599627370496.0; }   /* in (0, 1) */

static int pasta_serve(pasta_sample *sample, int losses, const char *name) {
    char line[256], *at = fgets(line, sizeof line, stdin) ? strstr(line, "\"dimension\":") : NULL;
    if (!at) return 1;
    int d = atoi(at + 12);
    printf("{\"pasta\": 1, \"dimension\": %d, \"losses\": %s, \"reproducible\": true, \"squares\": true, "
           "\"framing\": \"binary\", \"name\": \"%s\"}\n", d, losses ? "true" : "false", name);
    fflush(stdout);
    struct { uint64_t id, seed, first, count; uint32_t points, wanted; } ask;
    struct { uint64_t id; uint32_t status, length; } reply = {0, 0, 0};
    double *x = malloc(sizeof(double) * d), *g = malloc(sizeof(double) * d), *all = NULL;
    while (fread(&ask, 40, 1, stdin) == 1) {
        all = realloc(all, sizeof(double) * ask.points * (d + 2));
        double *loss = all + (size_t)ask.points * d, *square = loss + (ask.wanted & 1 ? ask.points : 0);
        if (!all || !x || !g) return 1;
        memset(all, 0, sizeof(double) * ask.points * (d + 2));
        for (uint32_t p = 0; p < ask.points; p++) {
            if (fread(x, sizeof(double), d, stdin) != (size_t)d) return 1;
            for (uint64_t n = ask.first; n < ask.first + ask.count; n++) {
                uint64_t number = n, rng = ask.seed ^ pasta_word(&number);   /* seed and number name the sample */
                memset(g, 0, sizeof(double) * d);
                double f = sample(d, x, &rng, g), s = 0;
                for (int i = 0; i < d; i++) all[(size_t)p * d + i] += g[i], s += g[i] * g[i];
                loss[p] += ask.wanted & 1 ? f : 0, square[p] += ask.wanted & 2 ? s : 0;
            }
        }
        reply.id = ask.id;
        fwrite(&reply, 16, 1, stdout);
        fwrite(all, sizeof(double), (size_t)ask.points * (d + (ask.wanted & 1) + (ask.wanted >> 1)), stdout);
        fflush(stdout);
    }
    return 0;
}
