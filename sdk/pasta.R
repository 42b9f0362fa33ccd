# Serves a simulator to pasta. One file without dependencies; docs/pipe.md has the protocol.
#
#     source("pasta.R")
#     sample_at <- function(x) {                  # draw from R's generators: they are seeded for this sample
#       error <- x - rexp(length(x))
#       list(gradient = error, loss = sum(error^2) / 2)
#     }
#     serve(sample_at, losses = TRUE, name = "mean of an exponential law")
#
# Write what people shall read with message(): stdout belongs to pasta.

serve <- function(sample_at, losses = FALSE, name = "") {
  input <- file("stdin", "rb")
  output <- file("/dev/stdout", "wb")
  line <- character(0)
  while (!identical(byte <- readBin(input, "raw", 1), as.raw(10)) && length(byte)) line <- c(line, rawToChar(byte))
  d <- as.integer(sub('.*"dimension": *([0-9]+).*', "\\1", paste(line, collapse = "")))
  hello <- sprintf(paste0('{"pasta": 1, "dimension": %d, "losses": %s, "reproducible": true, "squares": true, ',
                          '"framing": "binary", "name": "%s"}\n'), d, if (losses) "true" else "false", name)
  writeBin(charToRaw(hello), output)
  flush(output)
  little <- function(bytes, n) readBin(bytes, "integer", n, size = 4, endian = "little")
  while (length(head <- readBin(input, "raw", 40)) == 40) {
    first <- count_of(head[17:24])
    count <- count_of(head[25:32])
    counts <- little(head[33:40], 2)
    points <- lapply(seq_len(counts[1]), function(p) readBin(input, "double", d, endian = "little"))
    reply <- tryCatch({
      sums <- lapply(points, total, sample_at, head[9:16], first, count, losses, d)
      numbers <- unlist(lapply(sums, `[[`, "gradient"))
      if (bitwAnd(counts[2], 1L)) numbers <- c(numbers, vapply(sums, `[[`, 0, "loss"))
      if (bitwAnd(counts[2], 2L)) numbers <- c(numbers, vapply(sums, `[[`, 0, "square"))
      c(head[1:8], raw(8), writeBin(as.double(numbers), raw(), endian = "little"))
    }, error = function(e) {
      text <- charToRaw(conditionMessage(e))
      c(head[1:8], writeBin(c(1L, length(text)), raw(), endian = "little"), text)
    })
    writeBin(reply, output)
    flush(output)
  }
}

count_of <- function(bytes) sum(as.integer(bytes) * 256^(0:7))

total <- function(x, sample_at, seed, first, count, losses, d) {
  sums <- list(gradient = numeric(d), loss = 0, square = 0)
  words <- readBin(seed, "integer", 2, endian = "little")
  words[is.na(words)] <- 0L
  for (number in first + seq_len(count) - 1) {
    # Seed and number name the sample: two rounds, since set.seed takes 32 bits.
    set.seed(bitwXor(words[1], as.integer(number %% 2147483647)) %% 2147483647L)
    skip <- sample.int(2147483647L, 1)
    set.seed(bitwXor(words[2], skip) %% 2147483647L)
    s <- sample_at(x)
    g <- if (is.list(s)) s$gradient else s
    if (length(g) != d) stop(sprintf("the gradient has %d numbers, the point %d", length(g), d))
    sums <- list(gradient = sums$gradient + g, loss = sums$loss + if (losses) s$loss else 0, square = sums$square + sum(g^2))
  }
  sums
}
