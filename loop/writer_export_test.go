package loop

// BreakFile makes the next write of a [JSONL] or [CSV] fail, as a full disk would.
func BreakFile(a Attendant) error { return a.(*recordFile).file.Close() }
