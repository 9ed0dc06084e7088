//go:build nightly

package managed_test

func init() {
	leftoverSizes = nil
	for n := range 33 {
		leftoverSizes = append(leftoverSizes, n+1)
	}
}
