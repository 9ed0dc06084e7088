//go:build nightly

package managed_test

import "time"

func init() { besideFor = 20 * time.Second }
