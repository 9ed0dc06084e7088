//go:build unix

package probe

import (
	"math"

	"golang.org/x/sys/unix"
)

// ulimit -v in bytes
func addressLimit() uint64 {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_AS, &limit) != nil {
		return math.MaxUint64
	}
	return limit.Cur
}
