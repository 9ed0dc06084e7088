// Package spmd rewrites a program that XLA partitioned: [Rewrite] for one process of several, with exchanges as calls
// of handlers, [Join] for the devices of one process.
//
// XLA's partitioner (pjrt.Client.Partition) yields one program with collectives like all-reduce. [Rewrite] replaces
// these by custom calls: the plugin need not know other processes.
//
// # The calls
//
// Package mpi describes the calls, their shapes and attributes. A call returns a tuple. groups has all groups of
// partitions, in sequence. pred has min, max, and, or; integers all operations; complex dtypes sum and product; other
// floats all but and, or.
//
// lazo.rank returns the process's partition: all ranks compile one program, and equal computations are bit-identical.
//
// # The order
//
// A token passes from call to call, through loops, calls and branches, so that exchanges match. Independent sums become
// one call. An unknown construct is [ErrUnsupported].
package spmd
