// Package mpi lets XLA programs of several processes exchange values by MPI, with collectives as custom calls of its
// handlers.
//
// [Open] loads an MPI library at run time: Open MPI 4 or 5, MPICH and compatible ones (Intel MPI, MVAPICH), or any
// with the ABI of MPI 5. [Library.Init] joins the launcher's job and returns the [World]. Register [World.Handlers]
// with a plugin ([pjrt.Plugin.RegisterHandler]).
//
// # Calls in a program
//
// A handler is a custom call of version 4 (typed FFI). It takes arrays and a token, and returns as many arrays and a
// token. Tokens keep one order of calls on all ranks. Arrays have any of XLA's dtypes of at least a byte. Attributes
// are i64 or arrays of i64:
//
//   - lazo.all_reduce: site, op, groups, group_size. A result has its argument's shape.
//   - lazo.reduce_scatter: the same. An argument is [group_size, …], its result […].
//   - lazo.all_gather: site, groups, group_size. An argument is […], its result [group_size, …].
//   - lazo.all_to_all: site, groups, group_size. Both are [group_size, …].
//   - lazo.collective_permute: site, pairs. Shapes are equal; ranks that receive nothing get 0.
//   - lazo.rank: no attributes, arguments or tokens. The result is the rank, a u32.
//
// site numbers the program's collectives, for messages. op is 0 for the sum, 1 product, 2 minimum, 3 maximum, 4 and,
// 5 or. And and or are bitwise, for integers and pred; pred has no sum or product. The minimum or maximum with a NaN
// is NaN. Subnormals of f32, f64 and bf16 become 0, as on XLA's CPU. groups lists all ranks, group after group; pairs
// alternates sources and targets. A result may share its argument's memory (output_operand_aliases).
//
// Errors name the rank, the collective and its site. Two programs that exchange at once are refused.
//
// # Threads
//
// Programs exchange on XLA's threads, the host on others: the library must provide MPI_THREAD_MULTIPLE
// ([ErrThreads]). Handlers do not call Go.
package mpi
