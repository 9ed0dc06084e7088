//go:build nightly

package xla_test

func init() {
	memoryLimits = nil
	for percent := 8; percent <= 130; percent++ {
		memoryLimits = append(memoryLimits, percent)
	}
}
