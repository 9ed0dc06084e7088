// Package dist joins the processes of one training job: who they are, what they decide together, and that none of them
// hangs.
//
// [Join] asks the launcher's variables (mpirun, srun, torchrun, a Kubernetes Job, or LAZO_RANK and its like) which rank
// of how many this process is; without a launcher the job has size 1, and nothing is opened. Every rank has a TCP
// connection to rank 0, its control connection. Four times a second it says what it is doing: its step, what it waits
// in. Agreement ([Job.Agree], [Job.Barrier], [Job.Broadcast], [Job.AllGather]) goes by MPI where the launcher has it,
// and by the control connections else. All ranks make the same calls in the same order; calls that differ are an error
// on all of them that names both.
//
// [Job.Store] keeps values by keys, for plugins whose processes find each other so.
//
// # Nobody hangs
//
// Rank 0 watches. A rank whose connection ends before [Job.Close] has died; one that is silent for the deadline
// ([Deadline], $LAZO_DEADLINE, 10 s) is stopped, or its link is cut; one for which others wait in an exchange or in a
// call longer than that is stuck. Then the job ends, on all ranks, within the deadline and a second: each process exits
// with [ExitLost], [ExitStuck], [ExitDisagree] or [ExitFailed], without deferred calls, since a process that waits in C
// cannot be woken otherwise. Rank 0 writes one message to the standard error, or the lowest rank that is left where
// rank 0 was lost: which rank on which host, its step, what it was doing and for how long, and the stack of its loop
// where it can answer. [OnFailure] takes the message instead. What may take longer than the deadline on one rank alone
// says so by [Job.Busy].
//
// docs/processes.md has each launcher's file to copy, the variables and the exit codes.
package dist
