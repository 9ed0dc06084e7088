package xla

// WidestHead is what a device of a compute capability has of cuDNN's attention.
var WidestHead = widestHead

// SetWidestHead has a runtime lower as if its devices were CUDA's.
func SetWidestHead(r *Runtime, widest int) { r.Backend.(*client).widestHead = widest }
