// Package runs saves a run of package loop into a folder of package checkpoint, and goes on with it: [Save] is an
// option of the run, [Resume] puts the newest checkpoint into a state and gives the [Start], whose Option the run goes
// on with.
//
// What is saved is the state, what elapsed, the history, what the run was made with, and how it was stopped. A state is
// saved by its methods ([checkpoint.State], [checkpoint.Restorer], and if it has them [checkpoint.Versioned] and
// [checkpoint.Configured]). [KeepBest] takes the best checkpoint back at the end of a run; [SavedStates] lists what
// runs saved, for another process that evaluates it. Errors begin with "checkpoint:", as those of the folder do.
package runs
