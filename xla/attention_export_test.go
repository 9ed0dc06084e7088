package xla

// WidestHead returns the largest head width of cuDNN's attention at a compute capability.
var WidestHead = widestHead

// SetWidestHead makes a runtime lower as for CUDA devices.
func SetWidestHead(r *Runtime, widest int) { r.Backend.(*pjrtClient).widestHead = widest }
