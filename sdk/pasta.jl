# Serves a simulator to pasta. One file without dependencies; docs/pipe.md has the protocol.
#
#     include("pasta.jl")
#     function sample(x, rng, gradient)           # rng: the generator of this sample
#         error = x .+ log.(rand(rng, length(x)))
#         gradient .+= error                      # add to it
#         sum(abs2, error) / 2                    # the loss
#     end
#     Pasta.serve(sample; losses = true, name = "mean of an exponential law")
#
# Write what people shall read to stderr; stdout belongs to pasta.
module Pasta

using Random

const Generator = isdefined(Random, :Xoshiro) ? Random.Xoshiro : MersenneTwister   # before Julia 1.7 there is no Xoshiro

function serve(sample; losses = false, name = "")
    hello = readline(stdin)
    d = parse(Int, match(r"\"dimension\": *([0-9]+)", hello)[1])
    println(stdout, "{\"pasta\": 1, \"dimension\": $d, \"losses\": $losses, \"reproducible\": true, \"squares\": true, ",
            "\"framing\": \"binary\", \"name\": \"$name\"}")
    flush(stdout)
    while !eof(stdin)
        id, seed, first, count = (ltoh(read(stdin, UInt64)) for _ in 1:4)
        points, wanted = (ltoh(read(stdin, UInt32)) for _ in 1:2)
        xs = [ltoh.(read!(stdin, Vector{Float64}(undef, d))) for _ in 1:points]
        reply = IOBuffer()
        try
            sums = [total(sample, x, seed, first, count) for x in xs]
            write(reply, htol(id), UInt64(0))
            foreach(s -> write(reply, htol.(s[1])), sums)
            wanted & 1 != 0 && foreach(s -> write(reply, htol(s[2])), sums)
            wanted & 2 != 0 && foreach(s -> write(reply, htol(s[3])), sums)
        catch error
            text = sprint(showerror, error)
            truncate(seekstart(reply), 0)
            write(reply, htol(id), htol(UInt32(1)), htol(UInt32(sizeof(text))), text)
        end
        write(stdout, take!(reply))
        flush(stdout)
    end
end

function total(sample, x, seed, first, count)
    gradient, loss, square, g = zero(x), 0.0, 0.0, zero(x)
    for number in first:first+count-1
        rng = Generator(hash(number, hash(seed)))   # seed and number name the sample
        fill!(g, 0.0)
        f = sample(x, rng, g)
        gradient .+= g
        loss += f isa Number ? f : 0.0
        square += sum(abs2, g)
    end
    gradient, loss, square
end

end
