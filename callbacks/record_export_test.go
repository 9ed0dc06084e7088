package callbacks

import "github.com/lazo-ml/lazo/loop"

// BreakFile makes the next write of a [JSONL] or [CSV] fail, as a full disk would.
func BreakFile(a loop.Attendant) error { return a.(*recordFile).file.Close() }
