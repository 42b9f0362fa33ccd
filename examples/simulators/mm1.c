/* A queue with one server: customers arrive at rate 1, a service has mean 1/x. Costs: the mean time in the system of the first
 * N customers, and C x for the speed. The gradient is pathwise (infinitesimal perturbation analysis): a service time is E/x, so
 * its derivative is -E/x^2, and waiting times follow Lindley's recursion.
 *
 *     cc -O2 -I../../sdk -o mm1 mm1.c -lm */
#include <math.h>

#include "pasta.h"

enum { N = 200 };
static const double C = 1.0;

static double sample(int d, const double *x, uint64_t *rng, double *gradient) {
    (void)d;
    if (x[0] <= 0) {
        gradient[0] = NAN;
        return NAN;
    }
    double wait = 0, slope = 0, time = 0, change = 0;
    for (int i = 0; i < N; i++) {
        double work = -log(pasta_uniform(rng)), gap = -log(pasta_uniform(rng));
        double service = work / x[0], faster = -work / (x[0] * x[0]);
        time += wait + service;
        change += slope + faster;
        wait += service - gap;
        slope += faster;
        if (wait < 0) wait = slope = 0;
    }
    gradient[0] += C + change / N;
    return C * x[0] + time / N;
}

int main(void) { return pasta_serve(sample, 1, "M/M/1, 200 customers, pathwise gradient"); }
