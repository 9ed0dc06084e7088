package probe

import "math"

// addressLimit returns how many bytes of addresses this process may have.
func addressLimit() uint64 { return math.MaxUint64 }
