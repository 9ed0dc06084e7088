package loop

// RankError lets tests ask which rank ended a run.
type RankError = rankError

// ExitCode lets tests ask for the exit code of Exit without ending the process.
func ExitCode(err error) int { return exitCode(err) }
