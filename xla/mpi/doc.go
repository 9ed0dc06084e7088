// Package mpi lets XLA's programs exchange values with other processes by MPI: the collectives of a program that was
// divided over several processes are calls of this package's handlers, which call MPI.
//
// [Open] finds and loads an MPI library when the program runs: Open MPI 4 or 5, MPICH and what has its binary
// interface (Intel MPI, MVAPICH), or any library with the interface of MPI 5. Nothing is linked, and a program that
// was built once runs with each of them. [Library.Init] makes the process a part of its job, as the launcher started
// it, and gives the [World]. [World.Handlers] are registered with a plugin ([pjrt.Plugin.RegisterHandler]).
//
// # Calls in a program
//
// A handler is a custom call of version 4 (typed FFI). Its arguments are arrays and then a token, its results as many
// arrays and then a token: the tokens keep the calls of a program in one order, without which ranks would meet each
// other's values in the wrong places. All number types of XLA but those of less than a byte are known. Attributes are
// of type i64, or arrays of i64:
//
//   - lazo.all_reduce: site, op, groups, group_size. A result has the shape of its argument.
//   - lazo.reduce_scatter: the same. An argument is [group_size, …], its result […].
//   - lazo.all_gather: site, groups, group_size. An argument is […], its result [group_size, …].
//   - lazo.all_to_all: site, groups, group_size. Both are [group_size, …].
//   - lazo.collective_permute: site, pairs. Both have the same shape; what receives nothing becomes 0.
//   - lazo.rank: no attributes, arguments or tokens. Its result is the rank, of type u32.
//
// site is the number of the collective in the program, for messages. op is 0 for the sum, 1 product, 2 minimum, 3
// maximum, 4 and, 5 or; and and or are bit by bit, for integers and pred, which has no sum or product. The minimum
// and maximum of NaN and anything is NaN. Subnormal numbers of 32 and 64 bits and of bf16 are 0, as they are in XLA's
// own code for CPUs. groups lists all ranks, group behind group, pairs sources and targets in turns. A result may
// share its argument's memory (output_operand_aliases).
//
// What a call says is held against the job and the shapes, and an error names the rank, the collective and its
// number. So does an error of MPI. Two programs that exchange at the same time are refused: their order would be left
// to chance.
//
// # Threads
//
// Programs exchange on XLA's threads while the host may exchange on others, so the library must give
// MPI_THREAD_MULTIPLE: [ErrThreads] otherwise. No handler calls Go.
package mpi
