//go:build unix

package probe

import (
	"math"

	"golang.org/x/sys/unix"
)

// addressLimit returns how many bytes of addresses this process may have (ulimit -v).
func addressLimit() uint64 {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_AS, &limit) != nil {
		return math.MaxUint64
	}
	return limit.Cur
}
