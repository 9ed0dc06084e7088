package probe

import "math"

func addressLimit() uint64 { return math.MaxUint64 }
