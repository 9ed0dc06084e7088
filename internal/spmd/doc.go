// Package spmd turns a program that XLA partitioned into that of one process of several, with exchanges as calls of
// handlers.
//
// [Partition] runs XLA's partitioner, which yields one program with collectives such as all-reduce. [Rewrite] replaces
// these by custom calls, so the plugin need not know other processes.
//
// # The calls
//
// By XLA's typed FFI, a call takes arrays and a token, and returns a tuple of such. Arrays are row-major. n is the
// group size:
//
//	target                   takes          gives
//	lazo.all_reduce          any shape      the same shape
//	lazo.all_gather          any shape      [n] + that shape
//	lazo.reduce_scatter      [n] + a shape  that shape
//	lazo.all_to_all          [n] + a shape  the same shape
//	lazo.collective_permute  any shape      the same shape; zeros where nobody sends
//
// lazo.rank takes nothing and returns the process's partition as u32[], without a token: all ranks compile one program,
// and equal computations are bit-identical.
//
// The attributes are site, the call's number; groups, all groups of group_size partitions in sequence; op of reductions
// (0 sum, 1 product, 2 min, 3 max, 4 and, 5 or); and pairs of collective_permute, alternating source and target. pred
// has min, max, and, or; integers all; complex dtypes sum and product; other floats all but and, or.
//
// # The order
//
// XLA's CPU runs independent calls concurrently, in varying order. To match exchanges, a token passes from call to
// call, through loops, calls and branches. Independent sums become one call. An unknown construct is [ErrUnsupported].
package spmd
