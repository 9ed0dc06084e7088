//go:build !unix

package board

import "time"

func cpuTime() time.Duration { return 0 }
