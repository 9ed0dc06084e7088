package loop

// RankError lets tests ask which rank ended a run.
type RankError = rankError
