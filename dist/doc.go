// Package dist joins the processes of one training job. It gives each process its rank, lets them agree, and ends the
// job when a process hangs or dies.
//
// [Join] reads the launcher's variables (mpirun, srun, torchrun, a Kubernetes Job, or LAZO_RANK and so on). Without a
// launcher the job has size 1, and nothing is opened. Each rank reports its step and activity four times per second
// over a TCP connection to rank 0, the control connection. [Job.Agree], [Job.Barrier], [Job.Broadcast] and
// [Job.AllGather] use MPI if the launcher has it, otherwise the control connections. All ranks must make the same
// calls in the same order; different methods, names or lengths are an error on all.
//
// # Stuck and lost ranks
//
// A rank is lost if its connection ends before [Job.Close], or if it sends nothing for the [Deadline]. It is stuck if
// others wait for it for longer. After 10 s standard error names such a rank. The job ends on all ranks within the
// deadline plus a second. Each process exits with [ExitLost], [ExitStuck], [ExitDisagree] or [ExitFailed], without
// deferred calls. One process writes a message ([Failure]) to standard error.
//
// # Who may join
//
// First a rank and rank 0 prove that they know the job's secret. MPI distributes it; without MPI it is $LAZO_SECRET,
// which `lazo run` sets. A process without it learns nothing and cannot delay the job.
//
// docs/processes.md has the commands of launchers, the variables and the exit codes.
package dist
