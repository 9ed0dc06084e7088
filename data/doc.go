// Package data holds training data in memory and deals it out in batches.
//
// An [Array] is a flat slice with dimensions; a [Field] is an array with a name; a [Set] is fields over the same
// examples, which [Set.Batches] deals out, in order or shuffled. [Prefetch] prepares batches ahead of their use, [Repeat] and [Take] make sequences longer and shorter.
// [Digits] comes with the package, [MNIST] and [OpenIDX] read files.
//
// All orders are pure functions of a seed: the same on each machine and in each run, so a position in the data is
// just a number of batches (see [Skip]).
package data
