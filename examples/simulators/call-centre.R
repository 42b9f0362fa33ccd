# A day in a call centre with two kinds of agents. x[1], x[2]: log staffing levels of two shifts, calls arrive at random rates, and a call
# that the shift cannot take is lost. Costs: wages and lost calls. The gradient is pathwise, with a fluid model of each shift.
source("../../sdk/pasta.R")

WAGE <- c(1.0, 1.4)
LOST <- 3.0
RATE <- c(30, 45)

sample_at <- function(x) {
  agents <- exp(x)
  calls <- rgamma(2, shape = 4, rate = 4) * RATE
  served <- agents * runif(2, 0.8, 1.2)
  short <- calls > served
  loss <- sum(WAGE * agents) + LOST * sum(pmax(calls - served, 0))
  list(gradient = WAGE * agents - LOST * ifelse(short, served, 0), loss = loss)
}

serve(sample_at, losses = TRUE, name = "call centre, two shifts")
