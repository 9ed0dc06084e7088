package board

import (
	"fmt"
	"os"
	"runtime/metrics"
)

// memory is the resident memory of the process in bytes, where the system has /proc; otherwise Go's alone.
func memory() float64 {
	var pages, resident float64
	if text, err := os.ReadFile("/proc/self/statm"); err == nil {
		if _, err := fmt.Sscan(string(text), &pages, &resident); err == nil {
			return resident * float64(os.Getpagesize())
		}
	}
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
	metrics.Read(sample)
	return float64(sample[0].Value.Uint64())
}
