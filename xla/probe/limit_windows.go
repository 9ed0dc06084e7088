package probe

import "math"

// addressLimit is unlimited.
func addressLimit() uint64 { return math.MaxUint64 }
