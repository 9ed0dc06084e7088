// Package spmd makes of a program that XLA divided over several partitions the program of one process of several: its
// exchanges are calls of handlers, in one order.
//
// XLA's partitioner turns one graph, annotated with how its values lie on a mesh, into the program that every partition
// runs, with collective instructions such as all-reduce ([Partition]). [Rewrite] puts a custom call for each of them,
// which a plugin that knows nothing of other processes compiles and runs.
//
// # The calls
//
// A call takes arrays and then a token, and gives a tuple of arrays and then a token, by XLA's typed FFI. Arrays lie
// in rows, the last axis running fastest. n is the size of a group:
//
//	target                   takes          gives
//	lazo.all_reduce          any shape      the same shape
//	lazo.all_gather          any shape      [n] + that shape
//	lazo.reduce_scatter      [n] + a shape  that shape
//	lazo.all_to_all          [n] + a shape  the same shape
//	lazo.collective_permute  any shape      the same shape; zeros where nobody sends
//
// lazo.rank takes nothing and gives the number of the process's partition as u32[], without a token. So all ranks
// compile one program, and what they compute alike has the same bits.
//
// Attributes are site, the number of the call in the program; groups, the partitions that exchange, groups of
// group_size one behind the other; op of what reduces (0 sum, 1 product, 2 min, 3 max, 4 and, 5 or); and pairs of
// collective_permute, source and target in turns. Which element type has which op: pred has min, max, and, or; integers
// have all; complex numbers sum and product; other floats all but and, or.
//
// # The order
//
// XLA's CPU runs calls that do not need each other's results side by side, in an order that differs from run to run and
// from process to process: an exchange would meet another one than its own. So a token goes from each call to the next,
// into and out of loops, calls and branches. Sums that do not need each other are one call. What is not known is an
// error ([ErrUnsupported]), never left as it is.
package spmd
