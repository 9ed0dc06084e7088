//go:build nightly

package xla_test

func init() {
	memoryLimits = nil
	for limit := 200; limit < 4000; limit += 50 {
		memoryLimits = append(memoryLimits, limit)
	}
}
